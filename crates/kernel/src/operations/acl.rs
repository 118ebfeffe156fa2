//! Lists of operations (http-api.md 8.4): what a spec or a change of parameters gives, and what is always in it.

use controller::spec::RootOptions;
use cypress::{Acl, Permission};
use vocab::Failure;
use yson::Value;

/// Operations are read and managed; other permissions would never count.
pub(crate) fn check(acl: &Value) -> Result<(), Failure> {
    let entries = acl.as_list().unwrap_or_default();
    let permissions = entries.iter().filter_map(|ace| ace.get("permissions")?.as_list()).flatten();
    let is_odd = |name: &&str| ![Permission::Read.name(), Permission::Manage.name()].contains(name);
    if let Some(odd) = permissions.filter_map(Value::as_str).find(is_odd) {
        let shown: String = odd.chars().take(100).collect();
        return Err(Failure::new(format!(
            "Permission {shown:?} is not allowed in the list of an operation: expected \"read\" or \"manage\""
        )));
    }
    Acl::given(acl).map(drop)
}

/// The starter may do everything, unless the spec says otherwise, and whatever the list becomes later.
pub(crate) fn whole(user: &str, root: &RootOptions, given: &[Value]) -> Vec<Value> {
    let mut acl: Vec<Value> = Vec::new();
    if root.add_authenticated_user_to_acl {
        let own = yson::map! {
            "action" => "allow",
            "subjects" => vec![user],
            "permissions" => vec!["read", "manage"],
        };
        acl.push(own.into());
    }
    // Whoever changes what was shown sends that back, too.
    let own = acl.first().cloned();
    acl.extend(given.iter().filter(|ace| Some(*ace) != own.as_ref()).cloned());
    acl
}
