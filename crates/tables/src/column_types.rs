//! A column's type has two names: the old one with `required` beside it, and `type_v3`, in which what may be missing is
//! `optional` (http-api.md 6.3). Whoever reads a schema finds both.

use crate::schema::kind;
use yson::{Map, Value};

/// Does the old name, if it is given, say the same as `type_v3`?
pub(crate) fn agree(v3: &Value, old: Option<&Value>, required: Option<bool>) -> Result<(), String> {
    let (name, is_required) = old_form(v3);
    let same = |old: &Value| old.as_str().is_some_and(|old| kind(old) == kind(name));
    if let Some(old) = old.filter(|old| !same(old)) {
        let old = yson::write::to_text_string(old);
        return Err(format!("\"type\" is {old}, but \"type_v3\" says {name:?}: give one of them"));
    }
    match required {
        Some(required) if required != is_required => {
            Err(format!("\"required\" is {required}, but \"type_v3\" says {is_required}: give one of them"))
        }
        _ => Ok(()),
    }
}

/// The old name, and `required`.
fn old_form(v3: &Value) -> (&str, bool) {
    if let Some(name) = v3.as_str() {
        return match name {
            "bool" => ("boolean", true),
            "yson" => ("any", true),
            "null" | "void" => (name, false),
            _ => (name, true),
        };
    }
    let Some(type_name) = v3.get("type_name").and_then(Value::as_str) else { return ("any", true) };
    match (type_name, v3.get("item")) {
        ("optional", Some(item)) => match old_form(item) {
            (name, true) => (name, false),
            // An optional of what may be missing anyway.
            _ => ("any", false),
        },
        ("tagged", Some(item)) => old_form(item),
        ("decimal", _) => ("string", true),
        ("list" | "struct" | "tuple" | "variant" | "dict" | "optional" | "tagged", _) => ("any", true),
        ("null" | "void", _) => (type_name, false),
        _ => (type_name, true),
    }
}

/// The inverse.
fn v3_form(name: &str, required: bool) -> Value {
    let name = match name {
        "boolean" => "bool",
        "any" => "yson",
        "null" | "void" => return name.into(),
        name => name,
    };
    match required {
        true => name.into(),
        false => yson::map! {"type_name" => "optional", "item" => name}.into(),
    }
}

/// A schema as it is shown: with both forms of every type, and all that would else be the default.
pub fn shown(schema: &Value) -> Value {
    let flag = |name: &str, default: bool| schema.attribute(name).and_then(Value::as_bool).unwrap_or(default);
    let columns = schema.as_list().unwrap_or_default().iter().map(|column| match column.as_map() {
        Some(map) => shown_column(map).into(),
        None => column.clone(),
    });
    let attributes =
        yson::map! {"strict" => flag("strict", true), "unique_keys" => flag("unique_keys", false)};
    Value::List(columns.collect()).with_attributes(attributes)
}

fn shown_column(column: &Map) -> Map {
    let text = |name: &str| column.get(name).and_then(Value::as_str).unwrap_or_default();
    let required = column.get("required").and_then(Value::as_bool).unwrap_or(false);
    let (old, required, v3) = match column.get("type_v3") {
        Some(v3) => {
            let (old, required) = old_form(v3);
            (old, required, v3.clone())
        }
        None => (text("type"), required, v3_form(text("type"), required)),
    };
    let mut shown = yson::map! {
        "name" => text("name"), "required" => required, "type" => old, "type_v3" => v3,
    };
    for (name, value) in column.iter().filter(|(_, value)| !value.is_entity()) {
        if !shown.contains(name) {
            shown.insert(name, value.clone());
        }
    }
    shown
}

#[cfg(test)]
mod tests {
    use super::*;

    fn value(text: &str) -> Value {
        yson::parse(text.as_bytes()).expect("YSON")
    }

    #[test]
    fn both_forms_are_shown_whichever_was_given() {
        let cases = [
            (
                "{name=a;type=int64}",
                "{name=a;required=%false;type=int64;type_v3={type_name=optional;item=int64}}",
            ),
            (
                "{name=a;type=boolean;required=%true;sort_order=ascending}",
                "{name=a;required=%true;type=boolean;type_v3=bool;sort_order=ascending}",
            ),
            ("{name=a;type_v3=bool}", "{name=a;required=%true;type=boolean;type_v3=bool}"),
            ("{name=a;type=any}", "{name=a;required=%false;type=any;type_v3={type_name=optional;item=yson}}"),
            ("{name=a;type=null}", "{name=a;required=%false;type=null;type_v3=null}"),
            (
                "{name=a;type_v3={type_name=optional;item={type_name=list;item=int8}}}",
                "{name=a;required=%false;type=any;type_v3={type_name=optional;item={type_name=list;item=int8}}}",
            ),
            (
                "{name=a;type_v3={type_name=decimal;precision=3;scale=1};group=#}",
                "{name=a;required=%true;type=string;type_v3={type_name=decimal;precision=3;scale=1}}",
            ),
        ];
        for (given, expected) in cases {
            let expected = value(&format!("<strict=%true;unique_keys=%false>[{expected}]"));
            let found = shown(&value(&format!("[{given}]")));
            assert_eq!(found, expected, "{given}");
            // What is shown is a schema, the same one.
            assert_eq!(shown(&found), expected, "{given}");
            let parsed = |value: &Value| crate::Schema::parse(value).expect("good");
            assert_eq!(parsed(&found), parsed(&value(&format!("[{given}]"))), "{given}");
        }
    }

    #[test]
    fn forms_that_say_different_things_are_refused() {
        let refused = [
            ("{name=a;type=int64;type_v3=string}", "\"type\" is \"int64\", but \"type_v3\" says \"string\""),
            ("{name=a;required=%true;type_v3={type_name=optional;item=int64}}", "\"required\" is true"),
            ("{name=a;required=%false;type_v3=int64}", "\"required\" is false"),
        ];
        for (given, expected) in refused {
            let failure = crate::Schema::parse(&value(&format!("[{given}]"))).expect_err(given).to_string();
            assert!(failure.contains(expected), "{failure}");
        }
        crate::Schema::parse(&value("[{name=a;type=any;type_v3={type_name=list;item=int8};required=%true}]"))
            .expect("the old name of a list is any");
    }
}
