//! An explanation for people.

use super::units::{amount, counted, duration, number, percent, trimmed};
use super::{
    GuaranteeCut, IntegralBound, IntegralGuarantee, Limit, LimitSource, Outcome, PoolExplanation,
    StrongGuarantee, Trend,
};
use crate::config::guarantee_type_name;
use std::fmt::{self, Display, Formatter};
use vocab::Share;

impl Display for PoolExplanation {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        writeln!(f, "{}", self.headline())?;
        for line in self.parts() {
            writeln!(f, "  {line}")?;
        }
        writeln!(f, "Why: {}", self.why())?;
        if let Some(fifo) = self.fifo_words() {
            writeln!(f, "Order: {fifo}")?;
        }
        if let Some(strong) = &self.strong {
            writeln!(f, "Strong guarantee: {}", self.strong_words(strong))?;
        }
        if let Some(integral) = &self.integral {
            for line in self.integral_words(integral) {
                writeln!(f, "{line}")?;
            }
        }
        if self.siblings.len() > 1 {
            writeln!(f, "Shares of {} in {}:", self.resource, self.parent.as_deref().unwrap_or("<Root>"))?;
            for line in self.sibling_lines() {
                writeln!(f, "  {line}")?;
            }
        }
        if !self.changes.is_empty() {
            writeln!(f, "What would change it:")?;
            for change in &self.changes {
                writeln!(f, "  - {change}")?;
            }
        }
        Ok(())
    }
}

impl PoolExplanation {
    fn of(&self, share: &Share) -> String {
        self.both(share[self.resource])
    }

    /// `37.5 % (3 cores)`.
    fn both(&self, share: f64) -> String {
        format!("{} ({})", percent(share), self.amount(share))
    }

    fn amount(&self, share: f64) -> String {
        amount(self.resource, share * self.total.get(self.resource))
    }

    fn headline(&self) -> String {
        let fair = self.fair_share.total[self.resource];
        if self.total.is_zero() {
            return format!("Pool \"{}\" of tree \"{}\" is entitled to nothing.", self.pool, self.tree);
        }
        format!(
            "Pool \"{}\" of tree \"{}\" is entitled to {} of the cluster: {} of {}.",
            self.pool,
            self.tree,
            percent(fair),
            number(fair * self.total.get(self.resource), self.resource),
            amount(self.resource, self.total.get(self.resource)),
        )
    }

    /// The share by origin, demand and usage.
    fn parts(&self) -> Vec<String> {
        if self.total.is_zero() {
            return Vec::new();
        }
        let share = &self.fair_share;
        let mut lines = vec![
            format!("by strong guarantee    {}", self.of(&share.strong_guarantee)),
            format!("by integral guarantee  {}", self.of(&share.integral_guarantee)),
            format!("by weight              {}", self.of(&share.weight_proportional)),
            format!("demand                 {}", self.of(&self.demand)),
        ];
        if self.limited_demand[self.resource] < self.demand[self.resource] - super::EPS {
            lines.push(format!("demand within limits   {}", self.of(&self.limited_demand)));
        }
        lines.push(format!("usage                  {}", self.of(&self.usage)));
        lines
    }

    fn why(&self) -> String {
        match &self.outcome {
            Outcome::NoNodes => "the tree has no nodes: there is nothing to share.".to_owned(),
            Outcome::NoDemand { waiting: 0 } => "nothing in it wants to run.".to_owned(),
            Outcome::NoDemand { waiting } => format!(
                "nothing in it wants to run: {} for a limit of operation counts, which is no demand.",
                counted(*waiting, "operation waits", "operations wait"),
            ),
            Outcome::Satisfied => "it is entitled to all that it wants.".to_owned(),
            Outcome::OwnLimit(limit) => format!("it has reached its own limit: {}.", limit_words(limit)),
            Outcome::Inside { limits, gangs } => {
                let mut reasons: Vec<String> =
                    limits.iter().map(|(name, limit)| format!("{name}: {}", limit_words(limit))).collect();
                reasons.extend(
                    gangs.iter().map(|g| format!("{g} runs all at once or not at all, and does not fit")),
                );
                format!("what is inside cannot take more ({}).", reasons.join("; "))
            }
            Outcome::AncestorLimit { pool, limit } => {
                format!("pool \"{pool}\" above it has reached its limit: {}.", limit_words(limit))
            }
            Outcome::ClusterFull { resources } => {
                let names: Vec<&str> = resources.iter().map(|r| r.as_str()).collect();
                let names = names.join(" and ");
                match &self.parent {
                    Some(parent) => format!(
                        "nothing is left of the cluster's {names}; what guarantees leave over is divided by weight \
                         in {parent}."
                    ),
                    None => format!("nothing is left of the cluster's {names}."),
                }
            }
            Outcome::NothingFits => {
                "something of the cluster is left, but nothing that wants it fits into the rest.".to_owned()
            }
        }
    }

    fn fifo_words(&self) -> Option<String> {
        let fifo = self.fifo.as_ref().filter(|f| f.operations > 0)?;
        let mut text = format!(
            "first in, first out; of {} the first {}",
            counted(fifo.operations as i64, "operation", "operations"),
            counted(fifo.satisfied as i64, "has all it wants", "have all they want"),
        );
        if let Some((id, share, demand)) = &fifo.first_short {
            text += &format!(", {id} has {} of {}", self.amount(*share), self.amount(*demand));
        }
        if fifo.empty > 0 {
            text += &format!(", {} nothing", counted(fifo.empty as i64, "has", "have"));
        }
        Some(text + ".")
    }

    fn strong_words(&self, strong: &StrongGuarantee) -> String {
        let effective = &strong.effective;
        let mut text = match &strong.cut {
            None => self.of(effective),
            Some(cut) => {
                let from = self.of(&strong.promised);
                let to = self.of(effective);
                match cut {
                    GuaranteeCut::OwnLimit(limit) => {
                        format!("{from}, of which the pool's limit leaves {to}: {}", limit_words(limit))
                    }
                    GuaranteeCut::Overcommit { factor, promised } => format!(
                        "{from}, scaled by {} to {to}: guarantees of the first level are {} of the cluster",
                        trimmed(format!("{factor:.3}")),
                        percent(*promised),
                    ),
                    GuaranteeCut::Parent { pool, factor } => format!(
                        "{from}, scaled by {} to {to}: pool \"{pool}\" has no more to guarantee",
                        trimmed(format!("{factor:.3}")),
                    ),
                }
            }
        };
        if !strong.absent.is_empty() {
            let names: Vec<&str> = strong.absent.iter().map(|r| r.as_str()).collect();
            text +=
                &format!("; nothing is guaranteed of {}, which the cluster does not have", names.join(", "));
        }
        let unused = effective[self.resource] - strong.given[self.resource];
        if strong.given[self.resource] <= 0.0 && unused > 0.0 {
            text += "; not used";
        } else if unused > super::EPS {
            text += &format!("; {} of it used", self.of(&strong.given));
        }
        text + "."
    }

    fn integral_words(&self, g: &IntegralGuarantee) -> Vec<String> {
        let kind = guarantee_type_name(g.kind);
        if !g.missing.is_empty() {
            let missing = g.missing.iter().map(|m| format!("integral_guarantees/{m}")).collect::<Vec<_>>();
            return vec![format!(
                "Integral guarantee ({kind}): without effect, {} not set.",
                match missing.as_slice() {
                    [one] => format!("{one} is"),
                    more => format!("{} are", more.join(" and ")),
                }
            )];
        }
        let bound = match &g.bound {
            IntegralBound::Inert => "without effect".to_owned(),
            IntegralBound::Demand if g.given <= 0.0 => {
                "nothing is wanted beyond the strong guarantee".to_owned()
            }
            IntegralBound::Demand => "all that its demand takes beyond the strong guarantee".to_owned(),
            IntegralBound::Burst if g.burst_ratio < g.specified_burst_ratio - super::EPS => format!(
                "its burst guarantee, scaled from {} because guarantees of the first level exceed the cluster",
                percent(g.specified_burst_ratio)
            ),
            IntegralBound::Burst => "its burst guarantee".to_owned(),
            IntegralBound::Volume if g.volume <= g.flow_ratio * g.smooth_period * 1.001 => {
                "what flows in: nothing is saved up".to_owned()
            }
            IntegralBound::Volume => {
                format!("what the volume allows, spread over {}", duration(g.smooth_period))
            }
            IntegralBound::Multiplier => {
                let times = if g.flow_ratio > 0.0 { g.relaxed_limit / g.flow_ratio } else { 0.0 };
                format!(
                    "{} times its flow, the most that a relaxed pool is given",
                    trimmed(format!("{times:.2}"))
                )
            }
            IntegralBound::Leftover { available, pools } => format!(
                "its part of the {} that used guarantees leave to {}",
                percent(*available),
                counted(*pools as i64, "relaxed pool", "relaxed pools"),
            ),
            IntegralBound::OwnLimit => "as much as its own limits allow".to_owned(),
            IntegralBound::AncestorLimit { pool } => {
                format!("as much as the limits of pool \"{pool}\" allow")
            }
        };
        let trend = match g.trend {
            Trend::Full => "it is full: what flows in is not kept".to_owned(),
            Trend::Filling { seconds } => format!("full in {}", duration(seconds)),
            Trend::Steady => "as much flows in as is spent".to_owned(),
            Trend::Draining { seconds } => {
                format!("at this rate the share can be held for {}", duration(seconds))
            }
            Trend::Settling if g.given > g.flow_ratio => {
                "it sinks, and the share with it, to what flows in".to_owned()
            }
            Trend::Settling => "it grows, and the share with it, to what flows in".to_owned(),
        };
        let volume = |v: f64| trimmed(format!("{v:.1}"));
        vec![
            format!("Integral guarantee ({kind}): {}, {bound}.", self.both(g.given)),
            format!(
                "Volume: {} of {} cluster-seconds; {} flows in, {} is spent; {trend}.",
                volume(g.volume),
                volume(g.capacity),
                self.both(g.flow_ratio),
                self.both(g.given),
            ),
        ]
    }

    fn sibling_lines(&self) -> Vec<String> {
        let mut lines: Vec<String> = self
            .siblings
            .iter()
            .map(|s| {
                let guarantee = match s.guarantee > 0.0 {
                    true => format!(", guaranteed {}", percent(s.guarantee)),
                    false => String::new(),
                };
                format!(
                    "{}{}: {} of {} wanted, weight {}{guarantee}{}",
                    if s.is_self { "* " } else { "  " },
                    s.id,
                    percent(s.fair_share),
                    percent(s.demand),
                    trimmed(format!("{:.3}", s.weight)),
                    if s.wants_more { "" } else { ", satisfied" },
                )
            })
            .collect();
        if self.more_siblings > 0 {
            lines.push(format!("  and {} more", self.more_siblings));
        }
        lines
    }
}

fn limit_words(limit: &Limit) -> String {
    let amount = amount(limit.resource, limit.amount);
    match limit.source {
        LimitSource::ResourceLimits => format!("resource_limits/{} is {amount}", limit.resource),
        LimitSource::MaxShareRatio(ratio) => {
            format!("max_share_ratio {ratio} is {amount} of {}", limit.resource)
        }
        LimitSource::TagFilter => {
            format!("nodes that match its scheduling_tag_filter have {amount} of {}", limit.resource)
        }
        LimitSource::BestAllocation => {
            format!("its jobs can fill at most {amount} of the nodes' {}", limit.resource)
        }
    }
}
