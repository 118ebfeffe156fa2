//! `top`: the tree of pools as a picture that is drawn anew every second.

use crate::units::{percent, resource, span};
use crate::views::node_list::part;
use crate::views::pools::{PoolForest, PoolRow};
use ratatui::Frame;
use ratatui::layout::{Constraint, Layout};
use ratatui::style::{Color, Modifier, Style};
use ratatui::text::{Line, Span as Piece};
use ratatui::widgets::{Cell, Paragraph, Row, Table};
use vocab::{Resource, Resources, Span};

/// Everything in one picture.
#[derive(Clone, Debug)]
pub struct TopView {
    /// Server.
    pub address: String,
    /// Pools.
    pub forest: PoolForest,
    /// What the nodes of the tree have.
    pub limits: Resources,
    /// Nodes of the tree.
    pub nodes: i64,
    /// How old the numbers are, when the server does not answer.
    pub stale: Option<Span>,
}

const COLUMNS: usize = 12;
const TITLES: [&str; COLUMNS] =
    ["POOL", "WEIGHT", "DEMAND", "USAGE", "FAIR", "PROMISED", "", "CPU", "MEMORY", "JOBS", "RUN", "WAIT"];
const NAME: usize = 0;
const USAGE: usize = 3;
/// The column of bars.
const BAR: usize = 6;
/// A shorter bar says nothing.
const BAR_MIN: u16 = 6;
const BAR_MAX: u16 = 40;

/// Draws `view` with the first `scroll` pools left out.
pub fn draw(frame: &mut Frame<'_>, view: &TopView, scroll: usize, paused: bool) {
    let [head, body, foot] =
        Layout::vertical([Constraint::Length(2), Constraint::Min(1), Constraint::Length(1)])
            .areas(frame.area());
    frame.render_widget(Paragraph::new(header(view)), head);

    let bold = Style::new().add_modifier(Modifier::BOLD);
    let texts: Vec<[String; COLUMNS]> = view.forest.rows.iter().map(texts).collect();
    // As wide as what is in it; the bar takes what is left.
    let mut widths: [u16; COLUMNS] = std::array::from_fn(|column| {
        let cells = texts.iter().map(|row| row[column].chars().count());
        cells.chain([TITLES[column].len()]).max().unwrap_or_default().min(40) as u16
    });
    let rest = body.width.saturating_sub(widths.iter().sum::<u16>() + COLUMNS as u16);
    widths[BAR] = if rest < BAR_MIN { 0 } else { rest.min(BAR_MAX) };
    let rows = view.forest.rows.iter().zip(texts).skip(scroll);
    let rows = rows.map(|(pool, texts)| row(pool, texts, widths[BAR]));
    let titles = TITLES.iter().enumerate().map(|(column, title)| match column {
        NAME => Cell::from(*title),
        _ => right((*title).to_owned()),
    });
    let table = Table::new(rows, widths.map(Constraint::Length))
        .header(Row::new(titles).style(bold))
        .column_spacing(1);
    frame.render_widget(table, body);

    let state = if paused { "  paused" } else { "" };
    frame.render_widget(
        Paragraph::new(format!("q quit  arrows scroll  space pause{state}")).style(dim()),
        foot,
    );
}

fn dim() -> Style {
    Style::new().add_modifier(Modifier::DIM)
}

fn header(view: &TopView) -> Vec<Line<'static>> {
    let used = &view.forest.root.used;
    let resources: Vec<String> = [Resource::Cpu, Resource::Memory, Resource::UserSlots, Resource::Gpu]
        .into_iter()
        .filter(|r| view.limits.raw(*r) > 0)
        .map(|r| {
            let ratio = used.share_of(&view.limits)[r];
            format!("{r} {} ({})", part(r, used, &view.limits), percent(ratio))
        })
        .collect();
    let mut first = vec![Piece::styled(
        format!("{}  tree {}", view.address, view.forest.tree),
        Style::new().add_modifier(Modifier::BOLD),
    )];
    let root = &view.forest.root;
    first.push(Piece::raw(format!(
        "  {} nodes, {} operations running, {} waiting",
        view.nodes, root.running, root.pending
    )));
    if let Some(stale) = view.stale {
        first.push(Piece::styled(
            format!("  no answer for {}", span(stale)),
            Style::new().fg(Color::Red).add_modifier(Modifier::BOLD),
        ));
    }
    vec![Line::from(first), Line::from(resources.join("  "))]
}

fn texts(pool: &PoolRow) -> [String; COLUMNS] {
    [
        pool.label(),
        pool.weight.to_string(),
        percent(pool.demand),
        percent(pool.usage),
        percent(pool.fair_share),
        pool.promised(),
        String::new(),
        resource(Resource::Cpu, pool.used.cpu.0),
        resource(Resource::Memory, pool.used.memory),
        pool.used.user_slots.to_string(),
        pool.running.to_string(),
        pool.pending.to_string(),
    ]
}

fn row(pool: &PoolRow, texts: [String; COLUMNS], bar: u16) -> Row<'static> {
    let usage = match (pool.is_starving, pool.is_short()) {
        (true, _) => Style::new().fg(Color::Red),
        (false, true) => Style::new().fg(Color::Yellow),
        (false, false) => Style::new(),
    };
    let name = if pool.is_ephemeral { dim() } else { Style::new() };
    Row::new(texts.into_iter().enumerate().map(|(column, text)| match column {
        NAME => Cell::from(text).style(name),
        USAGE => right(text).style(usage),
        BAR => Cell::from(shares(pool, usize::from(bar))),
        _ => right(text),
    }))
}

fn right(text: String) -> Cell<'static> {
    Cell::from(Line::from(text).right_aligned())
}

/// Usage as a bar, with a mark at the fair share.
fn shares(pool: &PoolRow, width: usize) -> Line<'static> {
    let at = |ratio: f64| ((ratio.clamp(0.0, 1.0) * width as f64).round() as usize).min(width);
    let used = if pool.usage > 0.0 { at(pool.usage).max(1) } else { 0 };
    let mark = (pool.fair_share > 0.0).then(|| at(pool.fair_share).max(1) - 1);
    let colour = if pool.is_short() { Color::Yellow } else { Color::Green };
    let piece = |i: usize| match (i < used, mark == Some(i)) {
        (true, true) => Piece::styled("▓", Style::new().fg(colour)),
        (true, false) => Piece::styled("█", Style::new().fg(colour)),
        (false, true) => Piece::styled("│", Style::new().fg(Color::Cyan)),
        (false, false) => Piece::styled("·", dim()),
    };
    Line::from((0..width).map(piece).collect::<Vec<_>>())
}
