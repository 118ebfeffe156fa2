//! Variables of a job (jobs-and-nodes.md 5.3).

use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;

/// Names and values in order; of two with one name the later one wins. What all jobs of a task have in common
/// is there once: jobs are many.
#[derive(Clone, Default)]
pub struct Environment {
    common: Arc<[(String, String)]>,
    own: Vec<(Cow<'static, str>, String)>,
}

impl Environment {
    /// Those of a task, and behind them those of one of its jobs.
    pub fn new(common: Arc<[(String, String)]>, own: Vec<(Cow<'static, str>, String)>) -> Environment {
        Environment { common, own }
    }

    /// All in order.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        let common = self.common.iter().map(|(name, value)| (name.as_str(), value.as_str()));
        common.chain(self.own.iter().map(|(name, value)| (name.as_ref(), value.as_str())))
    }

    /// How many there are, those with one name counted one by one.
    pub fn len(&self) -> usize {
        self.common.len() + self.own.len()
    }

    /// There are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The value that a process would see.
    pub fn get(&self, name: &str) -> Option<&str> {
        // The last one.
        self.iter().filter(|(n, _)| *n == name).last().map(|(_, value)| value)
    }
}

impl FromIterator<(String, String)> for Environment {
    fn from_iter<I: IntoIterator<Item = (String, String)>>(variables: I) -> Environment {
        let own = variables.into_iter().map(|(name, value)| (Cow::Owned(name), value)).collect();
        Environment { common: Arc::default(), own }
    }
}

/// What is said counts, not where it is kept.
impl PartialEq for Environment {
    fn eq(&self, other: &Environment) -> bool {
        self.iter().eq(other.iter())
    }
}

impl fmt::Debug for Environment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.iter()).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_later_one_wins_wherever_it_is_kept() {
        let pair = |name: &str, value: &str| (name.to_owned(), value.to_owned());
        let all = [pair("A", "1"), pair("B", "2"), pair("A", "3")];
        let plain: Environment = all.iter().cloned().collect();
        let shared =
            Environment::new(all[..2].iter().cloned().collect(), vec![(Cow::Borrowed("A"), "3".to_owned())]);
        assert_eq!(plain, shared);
        assert_eq!((shared.get("A"), shared.get("B"), shared.get("C")), (Some("3"), Some("2"), None));
        assert_eq!(shared.len(), 3);
    }
}
