//! Amounts, shares and volumes of the five resources (fair-share.md 1, 2).

use std::fmt;
use std::ops::{Add, AddAssign, Index, IndexMut, Mul, Sub, SubAssign};
use yson::{Map, Value};

/// The kinds of resource, in the fixed order of vectors, loops and ties.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
#[repr(usize)]
pub enum Resource {
    /// Places for jobs.
    UserSlots = 0,
    /// Cores, two decimals.
    Cpu = 1,
    /// Devices.
    Gpu = 2,
    /// Bytes.
    Memory = 3,
    /// Abstract units.
    Network = 4,
}

/// All five, in order.
pub const RESOURCES: [Resource; 5] =
    [Resource::UserSlots, Resource::Cpu, Resource::Gpu, Resource::Memory, Resource::Network];

impl Resource {
    /// Name in share vectors and configuration.
    pub const fn as_str(self) -> &'static str {
        match self {
            Resource::UserSlots => "user_slots",
            Resource::Cpu => "cpu",
            Resource::Gpu => "gpu",
            Resource::Memory => "memory",
            Resource::Network => "network",
        }
    }
    /// By name; `user_memory` is accepted for `memory`.
    pub fn parse(name: &[u8]) -> Option<Resource> {
        match name {
            b"user_memory" => Some(Resource::Memory),
            _ => RESOURCES.into_iter().find(|r| r.as_str().as_bytes() == name),
        }
    }
}
impl fmt::Display for Resource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// Cores as fixed point with two decimals, kept in hundredths (fair-share.md 2.1).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Cpu(pub i64);

impl Cpu {
    /// Rounded half away from zero; values beyond the range saturate.
    pub fn from_f64(cores: f64) -> Cpu {
        Cpu((cores * 100.0).round() as i64)
    }
    /// Cores.
    pub fn as_f64(self) -> f64 {
        self.0 as f64 / 100.0
    }
}
impl fmt::Display for Cpu {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.as_f64())
    }
}
impl fmt::Debug for Cpu {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// Amounts of the five resources. Arithmetic saturates, so "infinity" stays infinite.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Resources {
    /// Places for jobs.
    pub user_slots: i64,
    /// Cores.
    pub cpu: Cpu,
    /// Devices.
    pub gpu: i64,
    /// Bytes.
    pub memory: i64,
    /// Abstract units.
    pub network: i64,
}

impl Resources {
    /// Nothing.
    pub const ZERO: Resources = Resources { user_slots: 0, cpu: Cpu(0), gpu: 0, memory: 0, network: 0 };
    /// An unspecified limit: a quarter of the type's maximum, so that sums of a few do not saturate.
    pub const INFINITE: Resources = Resources {
        user_slots: i64::MAX / 4,
        cpu: Cpu(i64::MAX / 4),
        gpu: i64::MAX / 4,
        memory: i64::MAX / 4,
        network: i64::MAX / 4,
    };

    /// Component in its integer unit: pieces, hundredths of a core, bytes.
    pub const fn raw(&self, r: Resource) -> i64 {
        match r {
            Resource::UserSlots => self.user_slots,
            Resource::Cpu => self.cpu.0,
            Resource::Gpu => self.gpu,
            Resource::Memory => self.memory,
            Resource::Network => self.network,
        }
    }
    /// Sets a component in its integer unit.
    pub fn set_raw(&mut self, r: Resource, raw: i64) {
        match r {
            Resource::UserSlots => self.user_slots = raw,
            Resource::Cpu => self.cpu = Cpu(raw),
            Resource::Gpu => self.gpu = raw,
            Resource::Memory => self.memory = raw,
            Resource::Network => self.network = raw,
        }
    }
    /// Component in natural units (cores, bytes, pieces).
    pub fn get(&self, r: Resource) -> f64 {
        match r {
            Resource::Cpu => self.cpu.as_f64(),
            other => self.raw(other) as f64,
        }
    }
    /// Builds from integer units.
    pub fn from_raw(mut f: impl FnMut(Resource) -> i64) -> Resources {
        let mut out = Resources::ZERO;
        for r in RESOURCES {
            out.set_raw(r, f(r));
        }
        out
    }
    fn zip(self, other: Resources, f: impl Fn(i64, i64) -> i64) -> Resources {
        Resources::from_raw(|r| f(self.raw(r), other.raw(r)))
    }
    /// Componentwise minimum.
    #[must_use]
    pub fn min(self, other: Resources) -> Resources {
        self.zip(other, i64::min)
    }
    /// Componentwise maximum.
    #[must_use]
    pub fn max(self, other: Resources) -> Resources {
        self.zip(other, i64::max)
    }
    /// Every component of `self` is at least that of `other`.
    pub fn dominates(&self, other: &Resources) -> bool {
        RESOURCES.into_iter().all(|r| self.raw(r) >= other.raw(r))
    }
    /// Every component of `self` is greater than that of `other`.
    pub fn strictly_dominates(&self, other: &Resources) -> bool {
        RESOURCES.into_iter().all(|r| self.raw(r) > other.raw(r))
    }
    /// All components are zero.
    pub fn is_zero(&self) -> bool {
        *self == Resources::ZERO
    }
    /// `self / total` by component; 0 where the total is 0, whatever `self` is (fair-share.md 2.2).
    pub fn share_of(&self, total: &Resources) -> Share {
        Share::from_fn(|r| if total.raw(r) == 0 { 0.0 } else { self.get(r) / total.get(r) })
    }
    /// Componentwise product with whole numbers, for `count` equal jobs.
    #[must_use]
    pub fn times(self, count: i64) -> Resources {
        Resources::from_raw(|r| self.raw(r).saturating_mul(count))
    }
    /// How many of `each` fit; `i64::MAX` if `each` is zero.
    pub fn fits_count(&self, each: &Resources) -> i64 {
        RESOURCES
            .into_iter()
            .filter(|r| each.raw(*r) > 0)
            .map(|r| (self.raw(r) / each.raw(r)).max(0))
            .min()
            .unwrap_or(i64::MAX)
    }
    /// The map that the Orchid shows: `cpu` a double, others int64; `user_memory` beside `memory`.
    pub fn to_value(&self) -> Value {
        yson::map! {
            "user_slots" => self.user_slots,
            "cpu" => self.cpu.as_f64(),
            "gpu" => self.gpu,
            "memory" => self.memory,
            "user_memory" => self.memory,
            "network" => self.network,
        }
        .into()
    }
}

impl Add for Resources {
    type Output = Resources;
    fn add(self, o: Resources) -> Resources {
        self.zip(o, i64::saturating_add)
    }
}
impl Sub for Resources {
    type Output = Resources;
    fn sub(self, o: Resources) -> Resources {
        self.zip(o, i64::saturating_sub)
    }
}
impl AddAssign for Resources {
    fn add_assign(&mut self, o: Resources) {
        *self = *self + o;
    }
}
impl SubAssign for Resources {
    fn sub_assign(&mut self, o: Resources) {
        *self = *self - o;
    }
}
/// Rounded half away from zero, per component.
impl Mul<f64> for Resources {
    type Output = Resources;
    fn mul(self, k: f64) -> Resources {
        Resources::from_raw(|r| (self.raw(r) as f64 * k).round() as i64)
    }
}
/// Rounded half away from zero, per component.
impl Mul<Share> for Resources {
    type Output = Resources;
    fn mul(self, k: Share) -> Resources {
        Resources::from_raw(|r| (self.raw(r) as f64 * k[r]).round() as i64)
    }
}
impl fmt::Debug for Resources {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}
/// `{user_slots=1 cpu=2 memory=1073741824}`: only what is not zero.
impl fmt::Display for Resources {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("{")?;
        let mut first = true;
        for r in RESOURCES.into_iter().filter(|r| self.raw(*r) != 0) {
            write!(f, "{}{r}={}", if first { "" } else { " " }, self.get(r))?;
            first = false;
        }
        f.write_str("}")
    }
}

/// Five fractions of the cluster, one for each resource.
#[derive(Clone, Copy, PartialEq, Default, Debug)]
pub struct Share(pub [f64; 5]);

impl Share {
    /// All zero.
    pub const ZERO: Share = Share([0.0; 5]);
    /// All one: the whole cluster.
    pub const ONES: Share = Share([1.0; 5]);
    /// The same fraction of everything.
    pub const fn splat(x: f64) -> Share {
        Share([x; 5])
    }
    /// By component.
    pub fn from_fn(mut f: impl FnMut(Resource) -> f64) -> Share {
        Share(RESOURCES.map(&mut f))
    }
    fn zip(self, o: Share, f: impl Fn(f64, f64) -> f64) -> Share {
        let mut out = self.0;
        for (a, b) in out.iter_mut().zip(o.0) {
            *a = f(*a, b);
        }
        Share(out)
    }
    /// Componentwise minimum.
    #[must_use]
    pub fn min(self, o: Share) -> Share {
        self.zip(o, |a, b| if b < a { b } else { a })
    }
    /// Componentwise maximum.
    #[must_use]
    pub fn max(self, o: Share) -> Share {
        self.zip(o, |a, b| if b > a { b } else { a })
    }
    /// Every component of `self` is at least that of `o`; exact comparison.
    pub fn dominates(&self, o: &Share) -> bool {
        self.0.iter().zip(o.0).all(|(a, b)| *a >= b)
    }
    /// The largest component ("dominant").
    pub fn max_component(&self) -> f64 {
        self.0.iter().copied().fold(f64::NEG_INFINITY, f64::max)
    }
    /// The smallest component.
    pub fn min_component(&self) -> f64 {
        self.0.iter().copied().fold(f64::INFINITY, f64::min)
    }
    /// All components are exactly zero.
    pub fn is_zero(&self) -> bool {
        self.0.iter().all(|x| *x == 0.0)
    }
    /// Map by resource name.
    pub fn to_value(&self) -> Value {
        RESOURCES.into_iter().map(|r| (r.as_str(), self[r])).collect::<Map>().into()
    }
}
impl Index<Resource> for Share {
    type Output = f64;
    fn index(&self, r: Resource) -> &f64 {
        &self.0[r as usize]
    }
}
impl IndexMut<Resource> for Share {
    fn index_mut(&mut self, r: Resource) -> &mut f64 {
        &mut self.0[r as usize]
    }
}
impl Add for Share {
    type Output = Share;
    fn add(self, o: Share) -> Share {
        self.zip(o, |a, b| a + b)
    }
}
impl AddAssign for Share {
    fn add_assign(&mut self, o: Share) {
        *self = *self + o;
    }
}
impl Sub for Share {
    type Output = Share;
    fn sub(self, o: Share) -> Share {
        self.zip(o, |a, b| a - b)
    }
}
impl SubAssign for Share {
    fn sub_assign(&mut self, o: Share) {
        *self = *self - o;
    }
}
impl Mul<f64> for Share {
    type Output = Share;
    fn mul(self, k: f64) -> Share {
        Share(self.0.map(|x| x * k))
    }
}

/// Resources x seconds. `cpu` is kept in hundredths of a core-second, as in the reference.
#[derive(Clone, Copy, PartialEq, Default, Debug)]
pub struct Volume {
    /// Slot-seconds.
    pub user_slots: f64,
    /// Hundredths of a core-second.
    pub cpu: Cpu,
    /// Device-seconds.
    pub gpu: f64,
    /// Byte-seconds.
    pub memory: f64,
    /// Unit-seconds.
    pub network: f64,
}

impl Volume {
    /// Component in natural units x seconds.
    pub fn get(&self, r: Resource) -> f64 {
        match r {
            Resource::UserSlots => self.user_slots,
            Resource::Cpu => self.cpu.as_f64(),
            Resource::Gpu => self.gpu,
            Resource::Memory => self.memory,
            Resource::Network => self.network,
        }
    }
    /// Sets a component from natural units x seconds; `cpu` is rounded to hundredths.
    pub fn set(&mut self, r: Resource, x: f64) {
        match r {
            Resource::UserSlots => self.user_slots = x,
            Resource::Cpu => self.cpu = Cpu::from_f64(x),
            Resource::Gpu => self.gpu = x,
            Resource::Memory => self.memory = x,
            Resource::Network => self.network = x,
        }
    }
    /// Map of doubles by resource name; `user_memory` beside `memory`.
    pub fn to_value(&self) -> Value {
        let mut m: Map = RESOURCES.into_iter().map(|r| (r.as_str(), self.get(r))).collect();
        m.insert("user_memory", self.memory);
        m.into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cpu_rounds_half_away_from_zero() {
        assert_eq!(Cpu::from_f64(0.125), Cpu(13));
        assert_eq!(Cpu::from_f64(-0.125), Cpu(-13));
    }

    #[test]
    fn share_of_a_missing_resource_is_zero() {
        let total = Resources { cpu: Cpu(1000), ..Resources::ZERO };
        let used = Resources { cpu: Cpu(250), gpu: 3, ..Resources::ZERO };
        assert_eq!(used.share_of(&total), Share([0.0, 0.25, 0.0, 0.0, 0.0]));
    }

    #[test]
    fn infinity_survives_sums() {
        let x = Resources::INFINITE + Resources::INFINITE;
        assert!(x.dominates(&Resources::INFINITE));
        assert_eq!(
            Resources::from_raw(|_| i64::MAX) + Resources::INFINITE,
            Resources::from_raw(|_| i64::MAX)
        );
    }
}
