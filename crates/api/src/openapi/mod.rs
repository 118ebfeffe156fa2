//! The OpenAPI description of what is served, made from what is served: the table of commands, and what
//! the parsers of parameters look for ([`probe`]). So it cannot say anything else than the server does.

mod probe;
mod words;

use crate::commands::{Data, Descriptor, Kind, QUESTIONS, TABLE};
use probe::Parameter;
use yson::{Map, Value};

/// The whole document.
pub fn document(version: &str) -> Map {
    let mut paths = Map::new();
    for descriptor in TABLE {
        paths.insert(format!("/api/v4/{}", descriptor.name), of_command(descriptor));
    }
    for (name, parse) in QUESTIONS {
        let parameters = probe::parameters(&|params| parse(params).map(drop));
        let operation = operation(name, "Millpond's own", in_query(&parameters)).with("security", secured());
        paths.insert(format!("/api/millpond/{name}"), yson::map! {"get" => operation});
    }
    for (path, summary, is_open) in PLAIN {
        let name = path.trim_matches('/').replace(['/', '.'], "_");
        let operation = operation(&name, "about the server", Vec::new()).with("summary", *summary);
        let operation = if *is_open { operation } else { operation.with("security", secured()) };
        paths.insert(*path, yson::map! {"get" => operation});
    }
    yson::map! {
        "openapi" => "3.0.3",
        "info" => yson::map! {
            "title" => "Millpond",
            "version" => version,
            "description" => "The HTTP API of the compute scheduler Millpond, in its JSON form. YSON, compression and \
                parameters in headers are described in the documentation.",
        },
        "paths" => paths,
        "components" => yson::map! {
            "securitySchemes" => yson::map! {
                "token" => yson::map! {"type" => "http", "scheme" => "bearer"},
            },
            "schemas" => yson::map! {"Error" => error_schema()},
        },
    }
}

/// Answered without parameters: path, what it is, and whether nobody has to sign in.
const PLAIN: &[(&str, &str, bool)] = &[
    ("/api", "Versions of the API", true),
    ("/api/v4", "Descriptors of all commands", true),
    ("/api/openapi.json", "This description", true),
    ("/hosts", "Addresses of heavy proxies: this server", true),
    ("/ping", "Is the server there?", true),
    ("/version", "Version of the server", true),
    ("/service", "Version and start time of the server", true),
    ("/health", "Can the server write its store?", true),
    ("/metrics", "What Prometheus asks for", false),
    ("/auth/whoami", "Who asks", false),
];

fn of_command(descriptor: &Descriptor) -> Map {
    let parameters = probe::of_command(descriptor);
    let tag = if descriptor.changes { "changes" } else { "questions" };
    let operation = |kind: &str, parameters| {
        let name = format!("{}_{kind}", descriptor.name);
        operation(&name, tag, parameters)
            .with("summary", words::of_command(descriptor.name))
            .with("security", secured())
    };
    let mut methods = Map::new();
    match descriptor.input {
        Data::Null => {
            if !descriptor.volatile {
                methods.insert("get", operation("get", in_query(&parameters)));
            }
            let body = yson::map! {
                "content" => yson::map! {
                    "application/json" => yson::map! {"schema" => in_body(&parameters)},
                },
            };
            methods.insert("post", operation("post", Vec::new()).with("requestBody", body));
        }
        input => {
            let content = match input {
                Data::Structured => yson::map! {"application/json" => yson::map! {"schema" => Map::new()}},
                _ => yson::map! {
                    "application/octet-stream" =>
                        yson::map! {"schema" => yson::map! {"type" => "string", "format" => "binary"}},
                },
            };
            let body = yson::map! {"required" => true, "content" => content};
            methods.insert("put", operation("put", in_query(&parameters)).with("requestBody", body));
        }
    }
    methods
}

fn operation(name: &str, tag: &str, parameters: Vec<Map>) -> Map {
    let failed = |what: &str| {
        yson::map! {
            "description" => what,
            "content" => yson::map! {
                "application/json" => yson::map! {
                    "schema" => yson::map! {"$ref" => "#/components/schemas/Error"},
                },
            },
        }
    };
    yson::map! {
        "operationId" => name,
        "tags" => vec![tag],
        "parameters" => parameters,
        "responses" => yson::map! {
            "200" => yson::map! {"description" => "The answer"},
            "400" => failed("Refused or failed: an error with its code"),
            "401" => failed("Nobody known asks"),
            "403" => failed("The user is banned"),
            "405" => failed("Another method is expected"),
            "415" => failed("An unknown encoding of the body"),
        },
    }
}

fn secured() -> Vec<Value> {
    // The server may let in everybody, so no token is a way in as well.
    vec![yson::map! {"token" => Vec::<Value>::new()}.into(), Map::new().into()]
}

/// As the query string has them: lists as `name[]=x`, maps as `name[key]=x`.
fn in_query(parameters: &[Parameter]) -> Vec<Map> {
    let one = |parameter: &Parameter| {
        let name = match parameter.kind {
            Kind::Texts => format!("{}[]", parameter.name),
            _ => parameter.name.clone(),
        };
        let of_query = yson::map! {"name" => name, "in" => "query", "required" => parameter.is_required};
        let of_query = match parameter.kind {
            Kind::Map => of_query.with("style", "deepObject").with("explode", true),
            _ => of_query,
        };
        of_query
            .with_some("description", words::of_parameter(&parameter.name))
            .with("schema", schema(parameter.kind))
    };
    parameters.iter().map(one).collect()
}

/// As a map in the body has them.
fn in_body(parameters: &[Parameter]) -> Map {
    let properties = parameters.iter().map(|parameter| {
        let described = schema(parameter.kind).with_some("description", words::of_parameter(&parameter.name));
        (parameter.name.as_str(), described)
    });
    let required: Vec<&str> = parameters.iter().filter(|p| p.is_required).map(|p| p.name.as_str()).collect();
    let object = yson::map! {"type" => "object", "properties" => properties.collect::<Map>()};
    if required.is_empty() { object } else { object.with("required", required) }
}

fn schema(kind: Kind) -> Map {
    match kind {
        Kind::Any => Map::new(),
        Kind::Text | Kind::Word | Kind::Path => yson::map! {"type" => "string"},
        Kind::Boolean => yson::map! {"type" => "boolean"},
        Kind::Count | Kind::Milliseconds => yson::map! {"type" => "integer", "minimum" => 0i64},
        Kind::Instant => yson::map! {"type" => "string", "format" => "date-time"},
        Kind::Map => yson::map! {"type" => "object"},
        Kind::Texts => yson::map! {"type" => "array", "items" => yson::map! {"type" => "string"}},
    }
}

fn error_schema() -> Map {
    let inner = yson::map! {"$ref" => "#/components/schemas/Error"};
    yson::map! {
        "type" => "object",
        "required" => vec!["code", "message", "attributes", "inner_errors"],
        "properties" => yson::map! {
            "code" => yson::map! {"type" => "integer"},
            "message" => yson::map! {"type" => "string"},
            "attributes" => yson::map! {"type" => "object"},
            "inner_errors" => yson::map! {"type" => "array", "items" => inner},
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at<'a>(value: &'a Value, path: &str) -> &'a Value {
        path.split(' ')
            .fold(value, |v, key| v.get(key).unwrap_or_else(|| panic!("{path}: no {key} in {v:?}")))
    }

    #[test]
    fn every_command_is_there_with_its_methods() {
        let document: Value = document("1.2.3").into();
        for descriptor in TABLE {
            let methods = at(&document, &format!("paths /api/v4/{}", descriptor.name));
            let methods: Vec<String> = methods.as_map().expect("a map").key_strings().collect();
            let allowed = descriptor.methods().to_lowercase();
            assert!(!methods.is_empty(), "{}", descriptor.name);
            for method in &methods {
                assert!(allowed.contains(method.as_str()), "{}: {method} of {allowed}", descriptor.name);
            }
        }
        for (name, _) in QUESTIONS {
            at(&document, &format!("paths /api/millpond/{name} get"));
        }
        assert_eq!(at(&document, "info version").as_str(), Some("1.2.3"));
    }

    #[test]
    fn parameters_are_those_that_parsers_look_for() {
        let document: Value = document("1").into();
        let body = |command: &str| {
            at(
                &document,
                &format!("paths /api/v4/{command} post requestBody content application/json schema"),
            )
        };
        let required = |command: &str| -> Vec<String> {
            let list = body(command).get("required").and_then(Value::as_list).unwrap_or_default();
            list.iter().filter_map(|v| v.as_str().map(str::to_owned)).collect()
        };
        assert_eq!(required("start_operation"), ["operation_type", "spec"]);
        assert_eq!(required("get_operation"), ["operation_id"]);
        assert_eq!(required("create"), ["type"]);
        assert_eq!(required("poll_job_shell"), ["parameters", "job_id"]);
        assert_eq!(required("set_user_password"), ["user", "new_password_sha256"]);
        assert_eq!(required("execute_batch"), ["requests"]);
        assert!(required("list_operations").is_empty());
        let kind = |command: &str, name: &str| {
            at(body(command), &format!("properties {name} type")).as_str().map(str::to_owned)
        };
        assert_eq!(kind("list_jobs", "limit").as_deref(), Some("integer"));
        assert_eq!(kind("list_jobs", "with_stderr").as_deref(), Some("boolean"));
        assert_eq!(kind("list_operations", "access").as_deref(), Some("object"));
        assert_eq!(kind("get", "attributes").as_deref(), Some("array"));
        assert_eq!(kind("start_transaction", "timeout").as_deref(), Some("integer"));
        assert_eq!(kind("lock", "transaction_id").as_deref(), Some("string"));
        let names: Vec<&str> = at(&document, "paths /api/v4/set put parameters")
            .as_list()
            .expect("a list")
            .iter()
            .filter_map(|p| p.get("name")?.as_str())
            .collect();
        assert!(names.contains(&"path") && names.contains(&"recursive"), "{names:?}");
    }
}
