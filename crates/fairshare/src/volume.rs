//! Accumulated volumes: refill, consumption, overflow and its distribution (fair-share.md 7).

use vocab::{Cpu, RESOURCES, Resource, Resources, Span, Volume};

use crate::input::GuaranteeType;
use crate::numbers::EPS;
use crate::output::IntegralOutput;
use crate::state::Update;

/// Volume on its way from pools that are full to pools that are not.
#[derive(Clone, Copy, Default)]
pub(crate) struct FreeVolume {
    /// Could not be kept.
    overflow: Volume,
    /// Of children; of pools that are not integral.
    children_overflow: Volume,
    /// Could be kept besides what there is.
    acceptable: Volume,
    /// Received.
    accepted: Volume,
}

/// A child, what volume of one resource it could take, its flow.
pub(crate) type Hungry = (usize, f64, f64);

impl Update<'_> {
    /// Refills and spends over the time since the previous periodic update.
    pub(crate) fn update_volumes(&mut self, since_previous: Option<Span>) {
        let Some(elapsed) = since_previous else { return };
        if self.total().is_zero() || self.integral_pools().next().is_none() {
            return;
        }
        for e in self.integral_pools() {
            self.refill_and_consume(e, elapsed);
        }
        self.collect_overflow();
        self.distribute_free_volume();
    }

    /// Before volumes are updated, and before an update that leaves them alone.
    pub(crate) fn forget_free_volumes(&mut self) {
        for e in self.raised {
            let row = self.row(*e);
            self.free_volume[row] = FreeVolume::default();
        }
    }

    /// D2: the reference rounds `total x ratio` to whole units, which makes small capacities 0.
    fn capacity(&self, e: usize) -> Volume {
        let options = &self.input.options;
        let period = options.pool_capacity_saturation_period;
        let ratio = self.out[e].resource_flow_ratio;
        if options.compat_strict {
            volume_of(&(*self.total() * ratio), period)
        } else {
            scale(&volume_of(self.total(), period), ratio)
        }
    }

    fn refill_and_consume(&mut self, e: usize, elapsed: Span) {
        let capacity = self.capacity(e);
        let can_accept = self.guarantees[self.row(e)].can_accept_free_volume;
        let cluster = volume_of(self.total(), elapsed);
        let resource_flow_ratio = self.out[e].resource_flow_ratio;
        let state = self.integral_state(e);
        let old = state.accumulated_volume;
        let refilled = plus(&old, &scale(&cluster, resource_flow_ratio));
        // By the share that was granted, not by real usage (7.2).
        let volume = max(&minus(&refilled, &scale(&cluster, state.last_share)), &Volume::default());
        // A volume above a capacity that has become smaller stays, but does not grow.
        let limit = max(&old, &capacity);
        state.accumulated_volume = min(&volume, &limit);
        let free = &mut self.free_volume[self.row(e)];
        free.overflow = max(&minus(&volume, &limit), &Volume::default());
        if can_accept {
            free.acceptable = max(&minus(&capacity, &volume), &Volume::default());
        }
    }

    /// Bottom-up: what children lose and could take, as far as they do not balance each other (7.3). Nothing
    /// comes from pools without an integral one below, and nothing goes there.
    fn collect_overflow(&mut self) {
        for &e in self.raised.iter().rev() {
            let guarantee = self.guarantees[self.row(e)];
            if guarantee.guarantee_type != GuaranteeType::None {
                continue;
            }
            let (mut overflow, mut acceptable) = (Volume::default(), Volume::default());
            for &c in self.child_pools(e) {
                overflow = plus(&overflow, &self.free_volume[self.row(c)].overflow);
                acceptable = plus(&acceptable, &self.free_volume[self.row(c)].acceptable);
            }
            let free = &mut self.free_volume[self.row(e)];
            free.children_overflow = overflow;
            free.overflow = max(&minus(&overflow, &acceptable), &Volume::default());
            free.acceptable = if guarantee.can_accept_free_volume {
                max(&minus(&acceptable, &overflow), &Volume::default())
            } else {
                Volume::default()
            };
        }
    }

    /// Top-down.
    fn distribute_free_volume(&mut self) {
        let by_default = self.input.options.should_distribute_free_volume_among_children;
        for &e in self.raised {
            let guarantee = self.guarantees[self.row(e)];
            if guarantee.guarantee_type != GuaranteeType::None {
                let accepted = self.free_volume[self.row(e)].accepted;
                let volume = &mut self.integral_state(e).accumulated_volume;
                *volume = plus(volume, &accepted);
                continue;
            }
            if guarantee.should_distribute_free_volume_among_children.unwrap_or(by_default) {
                let free = plus(
                    &self.free_volume[self.row(e)].accepted,
                    &self.free_volume[self.row(e)].children_overflow,
                );
                for r in RESOURCES.into_iter().filter(|r| free.get(*r) != 0.0) {
                    self.distribute_resource(e, r, free.get(r));
                }
            }
        }
    }

    /// In proportion to flows. Those who cannot take their part come first, so that what they leave goes
    /// to the others.
    fn distribute_resource(&mut self, e: usize, r: Resource, mut free: f64) {
        let mut hungry = std::mem::take(self.hungry);
        hungry.extend(
            self.child_pools(e)
                .iter()
                .map(|&c| {
                    (
                        c,
                        self.free_volume[self.row(c)].acceptable.get(r),
                        self.out[c].total_resource_flow_ratio,
                    )
                })
                .filter(|(_, acceptable, flow)| *acceptable > EPS && *flow > EPS),
        );
        hungry.sort_unstable_by(|a, b| (a.1 / a.2).total_cmp(&(b.1 / b.2)).then(a.0.cmp(&b.0)));
        let mut flows: f64 = hungry.iter().map(|(_, _, flow)| flow).sum();
        let mut satisfied = 0;
        for &(c, acceptable, flow) in &hungry {
            // What is left of a sum may be less than a part of it, by rounding.
            flows = flows.max(flow);
            if quantize(r, free * (flow / flows)) < acceptable {
                break;
            }
            self.free_volume[self.row(c)].accepted.set(r, acceptable);
            free = quantize(r, free - acceptable);
            flows -= flow;
            satisfied += 1;
        }
        for &(c, _, flow) in &hungry[satisfied..] {
            self.free_volume[self.row(c)].accepted.set(r, quantize(r, free * (flow / flows.max(flow))));
        }
        hungry.clear();
        *self.hungry = hungry;
    }

    /// `share_by_volume` of 6.6 and 7.4: the share that the pool could hold for a smooth period.
    pub(crate) fn share_by_volume(&self, e: usize) -> f64 {
        min_ratio(&self.state[self.row(e)].accumulated_volume, self.total())
            / self.input.options.smooth_period.as_secs_f64()
    }

    /// What is published of a burst or relaxed pool.
    pub(crate) fn integral_output(&self, e: usize) -> Option<IntegralOutput> {
        let share_limit = match self.guarantee_type(e) {
            GuaranteeType::None => return None,
            GuaranteeType::Burst => 0.0,
            GuaranteeType::Relaxed => self.relaxed_share_limit(e),
        };
        let flow_ratio = self.out[e].resource_flow_ratio;
        let (state, free) = (&self.state[self.row(e)], &self.free_volume[self.row(e)]);
        Some(IntegralOutput {
            capacity: self.capacity(e),
            ratio_capacity: self.input.options.pool_capacity_saturation_period.as_secs_f64() * flow_ratio,
            accumulated_volume: state.accumulated_volume,
            accumulated_ratio_volume: min_ratio(&state.accumulated_volume, self.total()),
            share_ratio_by_volume: self.share_by_volume(e),
            share_limit,
            last_share: state.last_share,
            // No pool below has a burst of its own, and this sum is taken before 6.4 scales.
            specified_burst_ratio: self.out[e].total_burst_ratio,
            specified_resource_flow_ratio: flow_ratio,
            overflow: free.overflow,
            accepted_free_volume: free.accepted,
        })
    }
}

/// Amounts held for a time.
pub(crate) fn volume_of(amounts: &Resources, time: Span) -> Volume {
    let mut volume = Volume::default();
    for r in RESOURCES {
        volume.set(r, amounts.get(r) * time.as_secs_f64());
    }
    volume
}

/// Smallest ratio to the total over the resources that the tree has: one that is missing is enough to
/// make the volume worthless (7.4).
fn min_ratio(volume: &Volume, total: &Resources) -> f64 {
    RESOURCES
        .into_iter()
        .filter(|r| total.raw(*r) > 0)
        .map(|r| volume.get(r) / total.get(r))
        .reduce(f64::min)
        .unwrap_or(0.0)
}

/// As it would be stored: `cpu` has two decimals.
fn quantize(r: Resource, x: f64) -> f64 {
    if r == Resource::Cpu { Cpu::from_f64(x).as_f64() } else { x }
}

fn scale(v: &Volume, k: f64) -> Volume {
    Volume {
        user_slots: v.user_slots * k,
        cpu: Cpu((v.cpu.0 as f64 * k).round() as i64),
        gpu: v.gpu * k,
        memory: v.memory * k,
        network: v.network * k,
    }
}

fn zip(a: &Volume, b: &Volume, f: impl Fn(f64, f64) -> f64, g: impl Fn(i64, i64) -> i64) -> Volume {
    Volume {
        user_slots: f(a.user_slots, b.user_slots),
        cpu: Cpu(g(a.cpu.0, b.cpu.0)),
        gpu: f(a.gpu, b.gpu),
        memory: f(a.memory, b.memory),
        network: f(a.network, b.network),
    }
}

fn plus(a: &Volume, b: &Volume) -> Volume {
    zip(a, b, |x, y| x + y, i64::saturating_add)
}
fn minus(a: &Volume, b: &Volume) -> Volume {
    zip(a, b, |x, y| x - y, i64::saturating_sub)
}
fn min(a: &Volume, b: &Volume) -> Volume {
    zip(a, b, f64::min, i64::min)
}
fn max(a: &Volume, b: &Volume) -> Volume {
    zip(a, b, f64::max, i64::max)
}
