//! Names of files in records of the release 0.1.

use vocab::sandbox_path::plain_directory;
use yson::ypath::YPath;
use yson::{Map, Value};

/// A specification whose `file_paths` have names in their plain form. The release 0.1 accepted `d//f` and `./f`; what it accepted
/// stays accepted.
pub fn with_plain_names(spec: &Map) -> Map {
    let entry = |(name, value): (&[u8], &Value)| {
        let value = match (name, value) {
            (b"file_paths", Value::List(files)) => Value::List(files.iter().map(plain_file).collect()),
            (_, Value::Map(below)) => Value::Map(with_plain_names(below)),
            (_, other) => other.clone(),
        };
        (name.to_vec(), value)
    };
    spec.iter().map(entry).collect()
}

fn plain_file(file: &Value) -> Value {
    let plain = || {
        let mut path = YPath::from_value(file).ok()?;
        let name = path.attributes.get("file_name")?.as_str()?;
        let plain = plain_directory(name).ok().filter(|plain| plain != name)?;
        path.attributes.insert("file_name", plain);
        Some(path.to_value())
    };
    plain().unwrap_or_else(|| file.clone())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// S1: names that one spelling has now, of operations that go on after an upgrade.
    #[test]
    fn names_of_files_get_their_plain_form_wherever_they_are() {
        let read =
            |text: &str| yson::parse(text.as_bytes()).expect("a value").as_map().cloned().expect("a map");
        let spec = read(
            r#"{pool=p; tasks={t={command=c; file_paths=["<file_name=\"d//f\">//tmp/a"; <file_name="./g">"//tmp/b"; "//tmp/c"]}};
                mapper={file_paths=[<file_name="..">"//tmp/d"]}}"#,
        );
        let plain = with_plain_names(&spec);
        let names = |path: &[&str]| -> Vec<Option<String>> {
            let list =
                path.iter().fold(Value::Map(plain.clone()), |at, key| at.get(key).cloned().expect("there"));
            let files =
                list.as_list().expect("a list").iter().map(|file| YPath::from_value(file).expect("a path"));
            files.map(|path| Some(path.attributes.get("file_name")?.as_str()?.to_owned())).collect()
        };
        assert_eq!(
            names(&["tasks", "t", "file_paths"]),
            [Some("d/f".to_owned()), Some("g".to_owned()), None]
        );
        assert_eq!(names(&["mapper", "file_paths"]), [Some("..".to_owned())], "the parser refuses it");
        assert_eq!(plain.get("pool"), spec.get("pool"));
    }
}
