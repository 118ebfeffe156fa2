//! `top`: asks, draws, listens to keys.

use super::{Session, pools};
use crate::args::TopArgs;
use crate::error::CliError;
use crate::output::Form;
use crate::views::{TopView, draw};
use client::{Client, Retries};
use ratatui::DefaultTerminal;
use ratatui::crossterm::event::{self, Event, KeyCode, KeyEventKind, KeyModifiers};
use std::io::IsTerminal;
use std::sync::mpsc::{Receiver, TryRecvError, channel};
use std::time::{Duration, Instant};
use vocab::{Resource, Resources, Span};
use yson::ypath::escape_literal;

pub fn run(session: &Session, args: &TopArgs) -> Result<(), CliError> {
    let tree = pools::tree_name(&session.client, &args.tree)?;
    let is_live = session.screen.form == Form::Human && std::io::stdout().is_terminal();
    if args.once || !is_live {
        return session.screen.show(&pools::forest(&session.client, &tree)?);
    }
    // The first picture before the screen is taken, so that an error can be read.
    let first = look(&session.client, &tree)?;
    let news = ask_regularly(session.client.clone().with_retries(Retries::NONE), tree, args.every);
    let mut terminal =
        ratatui::try_init().map_err(|e| CliError::failed(format!("the terminal cannot be used: {e}")))?;
    let result = live(&mut terminal, first, &news);
    ratatui::restore();
    result.map_err(|e| CliError::failed(format!("the terminal cannot be used: {e}")))
}

/// One look at the cluster.
fn look(client: &Client, tree: &str) -> Result<TopView, CliError> {
    let forest = pools::forest(client, tree)?;
    let path = format!("//sys/scheduler/orchid/scheduler/pool_trees/{}", escape_literal(tree));
    let limits = client.get(&format!("{path}/resource_limits"), &[])?;
    let nodes = client.get(&format!("{path}/node_count"), &[])?;
    let limits = Resources::from_raw(|r| {
        let value = limits.get(r.as_str());
        match r {
            Resource::Cpu => value.and_then(|v| v.as_f64()).map_or(0, |x| vocab::Cpu::from_f64(x).0),
            _ => value.and_then(|v| v.as_f64()).map_or(0, |x| x as i64),
        }
    });
    Ok(TopView {
        address: client.address().to_owned(),
        forest,
        limits,
        nodes: nodes.as_i64().unwrap_or_default(),
        stale: None,
    })
}

/// Requests are made beside the screen: keys are answered at once, whatever the server does.
fn ask_regularly(client: Client, tree: String, every: Span) -> Receiver<TopView> {
    let (sender, receiver) = channel();
    let every = Duration::from_micros(every.as_micros()).max(Duration::from_millis(100));
    std::thread::spawn(move || {
        loop {
            std::thread::sleep(every);
            let Ok(view) = look(&client, &tree) else { continue };
            if sender.send(view).is_err() {
                return;
            }
        }
    });
    receiver
}

fn live(terminal: &mut DefaultTerminal, first: TopView, news: &Receiver<TopView>) -> std::io::Result<()> {
    let mut view = first;
    let mut fresh = Instant::now();
    let (mut scroll, mut paused) = (0usize, false);
    loop {
        match news.try_recv() {
            Ok(new) => {
                fresh = Instant::now();
                if !paused {
                    view = new;
                }
            }
            Err(TryRecvError::Empty | TryRecvError::Disconnected) => {}
        }
        let age = fresh.elapsed();
        view.stale = (age > Duration::from_secs(5)).then(|| Span::from_secs(age.as_secs()));
        let last = view.forest.rows.len().saturating_sub(1);
        scroll = scroll.min(last);
        terminal.draw(|frame| draw(frame, &view, scroll, paused))?;
        if !event::poll(Duration::from_millis(200))? {
            continue;
        }
        let Event::Key(key) = event::read()? else { continue };
        if key.kind == KeyEventKind::Release {
            continue;
        }
        match key.code {
            KeyCode::Char('q') | KeyCode::Esc => return Ok(()),
            KeyCode::Char('c') if key.modifiers.contains(KeyModifiers::CONTROL) => return Ok(()),
            KeyCode::Char(' ') => paused = !paused,
            KeyCode::Up | KeyCode::Char('k') => scroll = scroll.saturating_sub(1),
            KeyCode::Down | KeyCode::Char('j') => scroll += 1,
            KeyCode::PageUp => scroll = scroll.saturating_sub(10),
            KeyCode::PageDown => scroll += 10,
            KeyCode::Home => scroll = 0,
            KeyCode::End => scroll = last,
            _ => {}
        }
    }
}
