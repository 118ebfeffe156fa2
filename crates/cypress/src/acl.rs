//! Access control lists and the decision they lead to (http-api.md 8.4).
//!
//! Nothing here knows the tree: the decision takes a chain of lists, nearest first, so pools and
//! operations use it as nodes do. Names of subjects are not checked for existence.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use vocab::{Failure, ObjectId};
use yson::{Map, Value};

macro_rules! words {
    ($(#[$doc:meta])* $name:ident, $what:literal { $($variant:ident = $text:literal),* $(,)? }) => {
        $(#[$doc])*
        #[allow(missing_docs)]
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
        pub enum $name { $($variant),* }
        impl $name {
            /// Every value.
            pub const ALL: &'static [$name] = &[$($name::$variant),*];
            /// The public name.
            pub const fn name(self) -> &'static str { match self { $($name::$variant => $text),* } }
            /// By public name; an unknown one is refused with the list of known ones.
            pub fn parse(text: &str) -> Result<$name, Failure> {
                $name::ALL.iter().copied().find(|x| x.name() == text).ok_or_else(|| {
                    let known = $name::ALL.iter().map(|x| x.name()).collect::<Vec<_>>().join(", ");
                    let shown: String = text.chars().take(100).collect();
                    Failure::new(format!("Unknown {} {shown:?}: expected one of {known}", $what))
                })
            }
        }
        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result { f.write_str(self.name()) }
        }
    };
}
words! {
    /// What somebody may do with an object.
    Permission, "permission" {
        Read = "read", Write = "write", Use = "use", Administer = "administer", Create = "create",
        Remove = "remove", Mount = "mount", Manage = "manage", ModifyChildren = "modify_children",
        RegisterQueueConsumer = "register_queue_consumer", FullRead = "full_read",
    }
}
words! {
    /// Does an entry give or take?
    Action, "ACE action" { Allow = "allow", Deny = "deny" }
}
words! {
    /// Which objects an entry speaks about: the one it is on, and those below.
    InheritanceMode, "inheritance mode" {
        ObjectAndDescendants = "object_and_descendants", ObjectOnly = "object_only",
        DescendantsOnly = "descendants_only", ImmediateDescendantsOnly = "immediate_descendants_only",
    }
}

impl InheritanceMode {
    /// What remains of the mode for an object `depth` levels below the one with the entry.
    fn below(self, depth: usize) -> Option<InheritanceMode> {
        use InheritanceMode::*;
        match (self, depth) {
            (mode, 0) => Some(mode),
            (ObjectAndDescendants | DescendantsOnly, _) => Some(ObjectAndDescendants),
            (ImmediateDescendantsOnly, 1) => Some(ObjectOnly),
            _ => None,
        }
    }

    /// Does it count for the object it is effective on?
    fn covers_object(self) -> bool {
        matches!(self, InheritanceMode::ObjectAndDescendants | InheritanceMode::ObjectOnly)
    }
}

/// Access control entry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ace {
    /// Gives or takes.
    pub action: Action,
    /// Users and groups.
    pub subjects: Vec<String>,
    /// What.
    pub permissions: BTreeSet<Permission>,
    /// For which objects.
    pub inheritance_mode: InheritanceMode,
    /// Restricts the entry to columns of tables; such an entry never decides about a whole object.
    pub columns: Option<Vec<String>>,
}

/// Access control list of one object.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Acl(pub Vec<Ace>);

impl Ace {
    /// Allows these permissions on the object and everything below.
    pub fn allow(subject: &str, permissions: &[Permission]) -> Ace {
        Ace {
            action: Action::Allow,
            subjects: vec![subject.to_owned()],
            permissions: permissions.iter().copied().collect(),
            inheritance_mode: InheritanceMode::ObjectAndDescendants,
            columns: None,
        }
    }

    /// From the public form. Unknown keys are refused: an entry that is half understood is a hole.
    pub fn parse(value: &Value) -> Result<Ace, Failure> {
        let map = value
            .as_map()
            .ok_or_else(|| crate::failures::wrong_type("Access control entry", "map", value))?;
        const KNOWN: [&str; 5] = ["action", "subjects", "permissions", "inheritance_mode", "columns"];
        if let Some(odd) = map.key_strings().find(|k| !KNOWN.contains(&k.as_str())) {
            let known = KNOWN.join(", ");
            return Err(Failure::new(format!("Unknown key {odd:?} in ACE: expected one of {known}")));
        }
        let word = |name: &str| match map.get(name) {
            None => Ok(None),
            Some(v) => v.as_str().map(Some).ok_or_else(|| bad(name, "string", v)),
        };
        Ok(Ace {
            action: Action::parse(word("action")?.ok_or_else(|| missing("action"))?)?,
            subjects: words(map, "subjects")?.ok_or_else(|| missing("subjects"))?,
            permissions: words(map, "permissions")?
                .ok_or_else(|| missing("permissions"))?
                .iter()
                .map(|p| Permission::parse(p))
                .collect::<Result<_, _>>()?,
            inheritance_mode: word("inheritance_mode")?
                .map_or(Ok(InheritanceMode::ObjectAndDescendants), InheritanceMode::parse)?,
            columns: words(map, "columns")?,
        })
    }

    /// Public form.
    pub fn to_value(&self) -> Value {
        yson::map! {
            "action" => self.action.name(),
            "subjects" => self.subjects.iter().map(String::as_str).collect::<Vec<_>>(),
            "permissions" => self.permissions.iter().map(|p| p.name()).collect::<Vec<_>>(),
            "inheritance_mode" => self.inheritance_mode.name(),
        }
        .with_some("columns", self.columns.clone())
        .into()
    }
}

fn missing(name: &str) -> Failure {
    Failure::new(format!("Missing key \"{name}\" in ACE"))
}

fn bad(name: &str, expected: &str, found: &Value) -> Failure {
    crate::failures::wrong_type(&format!("\"{name}\" in ACE"), expected, found)
}

fn words(map: &Map, name: &str) -> Result<Option<Vec<String>>, Failure> {
    let Some(value) = map.get(name) else { return Ok(None) };
    let list = value.as_list().ok_or_else(|| bad(name, "list of strings", value))?;
    list.iter()
        .map(|v| v.as_str().map(str::to_owned).ok_or_else(|| bad(name, "list of strings", v)))
        .collect::<Result<_, _>>()
        .map(Some)
}

impl Acl {
    /// From the public form, a list of entries.
    pub fn parse(value: &Value) -> Result<Acl, Failure> {
        let list = value
            .as_list()
            .ok_or_else(|| crate::failures::wrong_type("Access control list", "list", value))?;
        list.iter().map(Ace::parse).collect::<Result<_, _>>().map(Acl)
    }

    /// From the public form, as somebody sets it. What was once taken is read by [`Acl::parse`].
    pub fn given(value: &Value) -> Result<Acl, Failure> {
        let mut acl = Acl::parse(value)?;
        // A name twice means nothing else than once, and would be looked at twice.
        for ace in &mut acl.0 {
            let mut seen = BTreeSet::new();
            ace.subjects.retain(|subject| seen.insert(subject.clone()));
        }
        let is_odd =
            |ace: &Ace| ace.columns.is_some() && ace.permissions.iter().any(|p| *p != Permission::Read);
        match acl.0.iter().any(is_odd) {
            false => Ok(acl),
            true => Err(Failure::new(
                "An ACE with \"columns\" says who may read them: its only permission must be \"read\"",
            )),
        }
    }

    /// Is this subject in one of the entries?
    pub fn names(&self, subject: &str) -> bool {
        self.0.iter().any(|ace| ace.subjects.iter().any(|s| s == subject))
    }

    /// Takes a subject out of all entries, and entries of which nobody is left.
    pub fn forget(&mut self, subject: &str) {
        for ace in &mut self.0 {
            ace.subjects.retain(|s| s != subject);
        }
        // An entry of columns that is for nobody still says that they are not for everybody.
        self.0.retain(|ace| ace.columns.is_some() || !ace.subjects.is_empty());
    }

    /// Public form.
    pub fn to_value(&self) -> Value {
        Value::List(self.0.iter().map(Ace::to_value).collect())
    }
}

/// One list of a chain of inheritance.
#[derive(Clone, Copy, Debug)]
pub struct AclLink<'a> {
    /// The object that has the list.
    pub object: ObjectId,
    /// The list.
    pub acl: &'a Acl,
}

/// Who asks: the user and all groups that he is in, directly or not.
#[derive(Clone, Copy, Debug)]
pub struct Subjects<'a> {
    /// The user.
    pub user: &'a str,
    /// Groups, `everyone` included; see [`crate::Tree::member_of_closure`].
    pub groups: &'a BTreeSet<String>,
}

impl Subjects<'_> {
    /// `root` and members of `superusers` pass everything.
    pub fn is_superuser(&self) -> bool {
        self.user == "root" || self.groups.contains("superusers")
    }

    fn matches(&self, subject: &str) -> bool {
        subject == self.user || self.groups.contains(subject)
    }
}

/// Outcome of a check, with the entry that decided.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Decision {
    /// Outcome.
    pub action: Action,
    /// Object with the deciding entry; none if no entry matched, or for a superuser.
    pub object: Option<ObjectId>,
    /// Subject in the deciding entry.
    pub subject: Option<String>,
}

impl Decision {
    /// Allowed?
    pub fn is_allowed(&self) -> bool {
        self.action == Action::Allow
    }
}

/// The entries that are effective on the first object of the chain (nearest first), each with the
/// mode that it has there.
pub fn effective<'a>(
    chain: impl IntoIterator<Item = AclLink<'a>>,
) -> impl Iterator<Item = (ObjectId, &'a Ace, InheritanceMode)> {
    chain.into_iter().enumerate().flat_map(|(depth, link)| {
        link.acl.0.iter().filter_map(move |ace| Some((link.object, ace, ace.inheritance_mode.below(depth)?)))
    })
}

/// Columns of a table that are closed to somebody who may read the table. A column that entries name is for those whom
/// one of them lets in and none keeps out; a column that none names is as the table.
pub fn closed_columns<'a>(
    subjects: Subjects<'_>,
    chain: impl IntoIterator<Item = AclLink<'a>>,
) -> BTreeSet<String> {
    let mut named: BTreeMap<&str, Option<Action>> = BTreeMap::new();
    if subjects.is_superuser() {
        return BTreeSet::new();
    }
    for (_, ace, mode) in effective(chain) {
        let Some(columns) = ace.columns.as_ref().filter(|_| mode.covers_object()) else { continue };
        let is_for = ace.subjects.iter().any(|s| subjects.matches(s));
        for column in columns {
            let said = named.entry(column).or_default();
            if is_for && *said != Some(Action::Deny) {
                *said = Some(ace.action);
            }
        }
    }
    let closed = named.into_iter().filter(|(_, said)| *said != Some(Action::Allow));
    closed.map(|(column, _)| column.to_owned()).collect()
}

/// Decides: deny beats allow, no match is deny.
///
/// `chain` begins with the object in question and ends where inheritance ends.
pub fn decide<'a>(
    subjects: Subjects<'_>,
    permission: Permission,
    chain: impl IntoIterator<Item = AclLink<'a>>,
) -> Decision {
    if subjects.is_superuser() {
        return Decision { action: Action::Allow, object: None, subject: None };
    }
    let mut decision = Decision { action: Action::Deny, object: None, subject: None };
    for (object, ace, mode) in effective(chain) {
        if !mode.covers_object() || ace.columns.is_some() || !ace.permissions.contains(&permission) {
            continue;
        }
        let Some(subject) = ace.subjects.iter().find(|s| subjects.matches(s)) else { continue };
        let found = || Decision { action: ace.action, object: Some(object), subject: Some(subject.clone()) };
        match ace.action {
            Action::Deny => return found(),
            Action::Allow if decision.object.is_none() => decision = found(),
            Action::Allow => {}
        }
    }
    decision
}
