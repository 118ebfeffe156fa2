use super::*;

fn env() -> Vec<(String, String)> {
    environment(&[], "1-2-3-4")
}

#[test]
fn only_plain_words_go_directly() {
    let tmp = Path::new("/tmp");
    for yes in ["true", "/bin/true", "sleep 10", "  sleep\t0.5 ", "env A=b", "ls -l --color=never /"] {
        assert!(directly(yes, &env(), tmp).is_some(), "{yes}");
    }
    for no in [
        "",
        " ",
        "echo hi",
        "A=b env",
        "sleep 1; true",
        "sleep 1\ntrue",
        "cat *",
        "cat ~",
        "ls $HOME",
        "ls \"a\"",
        "ls 'a'",
        "ls a\\ b",
        "a && b",
        "ls > x",
        "ls #x",
        "! ls",
        "time ls",
        "no-such-program-at-all",
        "/etc",
        "/etc/passwd",
        "ls {a,b}",
        "%1",
        "ls a?",
        "ls [a]",
        "wait",
        "(ls)",
        "ls |cat",
        "sleep 1 &",
        "./none",
        "ls \u{e4}",
    ] {
        assert!(directly(no, &env(), tmp).is_none(), "{no}");
    }
}

#[test]
fn words_of_the_shell_are_found() {
    for w in [".", "[", "alias", "cd", "echo", "exit", "ulimit", "umask", "while", "wait", "kill", "time"] {
        assert!(is_shell_word(w), "{w}");
    }
    assert!(!is_shell_word("true") && !is_shell_word("sleep"));
}

#[test]
fn variables_that_bash_reads_forbid_the_short_cut() {
    for name in ["BASH_ENV", "BASH_FUNC_ls%%", "SHELLOPTS", "PWD", "SHLVL"] {
        let e = environment(&[(name.to_owned(), "x".to_owned())], "1-2-3-4");
        assert!(directly("true", &e, Path::new("/")).is_none(), "{name}");
    }
    let relative = environment(&[("PATH".to_owned(), "bin:/bin".to_owned())], "1-2-3-4");
    assert!(directly("true", &relative, Path::new("/")).is_none());
}

#[test]
fn later_variables_win_in_the_place_of_the_first() {
    let pair = |a: &str, b: &str| (a.to_owned(), b.to_owned());
    let got = environment(&[pair("A", "1"), pair("B", "2"), pair("A", "3"), pair("PATH", "/x")], "j");
    assert_eq!(got, [pair("A", "3"), pair("B", "2"), pair("PATH", "/x"), pair("YT_JOB_ID", "j")]);
}

#[test]
fn nul_bytes_are_named() {
    let e = environment(&[("A".to_owned(), "x\0".to_owned())], "j");
    assert_eq!(shell(false, Some("true"), &e), Err(NulByte("Variable \"A\"".to_owned())));
    assert!(directly("true", &e, Path::new("/")).is_none());
    assert_eq!(shell(false, Some("a\0"), &[]), Err(NulByte("Command".to_owned())));
}

/// The direct way must be indistinguishable: same variables, same arguments, same directory.
#[test]
fn a_program_sees_what_it_sees_under_bash() {
    let dir = tempfile::tempdir().expect("a directory");
    let dir = dir.path().canonicalize().expect("it exists");
    let environment = environment(&[("A".to_owned(), "b c".to_owned())], "1-2-3-4");
    let run = |plan: &Plan| {
        use std::os::unix::ffi::OsStrExt;
        use std::os::unix::process::CommandExt;
        let os = |s: &CString| std::ffi::OsStr::from_bytes(s.as_bytes()).to_owned();
        let mut c = std::process::Command::new(os(&plan.program));
        c.arg0(os(&plan.arguments[0])).args(plan.arguments[1..].iter().map(os)).env_clear().current_dir(&dir);
        for entry in &plan.environment {
            let (name, value) = entry.to_str().expect("text").split_once('=').expect("a variable");
            c.env(name, value);
        }
        let out = c.output().expect("it runs");
        let mut lines: Vec<String> =
            String::from_utf8_lossy(&out.stdout).lines().map(str::to_owned).collect();
        lines.sort();
        (out.status.code(), lines)
    };
    for command in ["env", "env X=1 printenv X", "cat /proc/self/cmdline", "readlink /proc/self/cwd", "false"]
    {
        let direct = directly(command, &environment, &dir).expect("plain words");
        let bash = shell(false, Some(command), &environment).expect("no NUL");
        assert_eq!(run(&direct), run(&bash), "{command}");
    }
}
