//! Arguments for a shell.

/// One line that a POSIX shell splits into exactly these arguments again.
pub fn command_line(arguments: &[String]) -> String {
    arguments.iter().map(|a| quote(a)).collect::<Vec<_>>().join(" ")
}

fn quote(argument: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "_-./:=@%+,".contains(c);
    // A word with = in front position is an assignment, and one that is a keyword is the shell's.
    const KEYWORDS: [&str; 15] = [
        "if", "then", "else", "elif", "fi", "do", "done", "case", "esac", "while", "until", "for", "in",
        "time", "function",
    ];
    if !argument.is_empty()
        && argument.chars().all(plain)
        && !argument.contains('=')
        && !KEYWORDS.contains(&argument)
    {
        return argument.to_owned();
    }
    // Inside single quotes nothing is special but the quote itself.
    format!("'{}'", argument.replace('\'', r"'\''"))
}

#[cfg(test)]
mod tests {
    use super::command_line;
    use proptest::prelude::*;
    use std::process::Command;

    #[test]
    fn plain_words_stay_plain() {
        let check = |arguments: &[&str], expected: &str| {
            let arguments: Vec<String> = arguments.iter().map(|a| (*a).to_owned()).collect();
            assert_eq!(command_line(&arguments), expected);
        };
        check(&["./train.sh", "--epochs", "3"], "./train.sh --epochs 3");
        check(&["echo", "a b", ""], "echo 'a b' ''");
        check(&["echo", "it's"], r"echo 'it'\''s'");
        check(&["bash", "-c", "echo $X | wc"], "bash -c 'echo $X | wc'");
        check(&["A=1", "if", "~"], "'A=1' 'if' '~'");
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(40))]
        #[test]
        fn a_shell_sees_the_same_arguments(arguments in prop::collection::vec("[^\0]{0,12}", 1..5)) {
            let line = command_line(&arguments);
            let output = Command::new("sh").arg("-c").arg(format!("printf '%s\\0' {line}")).output().expect("sh runs");
            let seen: Vec<String> = String::from_utf8(output.stdout)
                .expect("what went in")
                .split_terminator('\0')
                .map(str::to_owned)
                .collect();
            prop_assert_eq!(seen, arguments);
        }
    }
}
