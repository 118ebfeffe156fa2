//! Makes a table of the files of the web page, for `src/page.rs`. npm builds the page into `web/dist`; a
//! server without it compiles as well and says so at `/`.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::{env, fs, io};

fn main() -> io::Result<()> {
    let dist = Path::new(&env::var("CARGO_MANIFEST_DIR").unwrap_or_default()).join("../../web/dist");
    // This folder is always there. One that is not would make every build run this again.
    println!("cargo::rerun-if-changed={}", dist.display());
    let page = dist.join("page");
    let mut files = Vec::new();
    if page.is_dir() {
        collect(&page, &mut files)?;
    }
    files.sort();
    let mut table = String::from("&[\n");
    for file in files.iter().filter(|file| file.extension().is_none_or(|e| e != "gz")) {
        let name = file.strip_prefix(&page).unwrap_or(file).to_string_lossy().into_owned();
        let mut packed = file.clone().into_os_string();
        packed.push(".gz");
        let gzip = match Path::new(&packed).is_file() {
            true => format!("Some(include_bytes!({packed:?}))"),
            false => "None".into(),
        };
        let _ =
            writeln!(table, "    File {{ path: {name:?}, plain: include_bytes!({file:?}), gzip: {gzip} }},");
    }
    table.push(']');
    fs::write(Path::new(&env::var("OUT_DIR").unwrap_or_default()).join("page_files.rs"), table)
}

fn collect(directory: &Path, files: &mut Vec<PathBuf>) -> io::Result<()> {
    for entry in fs::read_dir(directory)? {
        let path = entry?.path();
        if path.is_dir() {
            collect(&path, files)?;
        } else {
            files.push(path);
        }
    }
    Ok(())
}
