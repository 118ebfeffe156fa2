//! The grammar of http-api.md 5.1.

use super::{MAX_KEY_LENGTH, MAX_STEPS, Root, Step, YPath, YPathError, literal, suffix};
use crate::Bytes;
use crate::error::{Fault, ParseError};
use crate::parse::parse_leading_attributes;
use crate::scan::Cursor;

enum Problem {
    Syntax(Fault),
    Parse(ParseError),
    KeyTooLong { length: usize, offset: usize },
    TooManySteps { offset: usize },
}
impl From<Fault> for Problem {
    fn from(fault: Fault) -> Problem {
        Problem::Syntax(fault)
    }
}

pub(super) fn parse(text: &[u8]) -> Result<YPath, YPathError> {
    let syntax = |error| YPathError::Syntax { path: text.escape_ascii().to_string(), error };
    run(text).map_err(|problem| match problem {
        Problem::Syntax(fault) => syntax(fault.explain(text)),
        Problem::Parse(error) => syntax(error),
        Problem::KeyTooLong { length, offset } => YPathError::KeyTooLong { length, offset },
        Problem::TooManySteps { offset } => YPathError::TooManySteps { offset },
    })
}

fn run(text: &[u8]) -> Result<YPath, Problem> {
    let (attributes, end) = parse_leading_attributes(text).map_err(Problem::Parse)?;
    let mut cursor = Cursor { input: text, pos: end };
    cursor.skip_space();
    let root = root(&mut cursor)?;
    let mut path = YPath { attributes, root, steps: Vec::new() };
    while let Some(b) = cursor.peek() {
        let start = cursor.pos;
        if path.steps.len() == MAX_STEPS && matches!(b, b'/' | b'&') {
            return Err(Problem::TooManySteps { offset: start });
        }
        match b {
            b'/' => {
                cursor.pos += 1;
                path.steps.push(slash(&mut cursor)?);
            }
            b'&' => {
                cursor.pos += 1;
                path.steps.push(Step::NoFollow);
            }
            b'{' | b'[' => {
                suffix::read(&mut cursor, &mut path.attributes)?;
                break;
            }
            _ => return Err(Fault::expected(start, "`/`, `&`, `{`, `[` or the end of the path").into()),
        }
    }
    Ok(path)
}

fn root(cursor: &mut Cursor<'_>) -> Result<Root, Fault> {
    if cursor.eat(b'/') {
        return Ok(Root::Tree);
    }
    if !cursor.eat(b'#') {
        return Err(Fault::expected(cursor.pos, "a path that starts with `/` or `#`"));
    }
    let start = cursor.pos;
    while let Some(b) = cursor.peek()
        && (b.is_ascii_hexdigit() || b == b'-')
    {
        cursor.pos += 1;
    }
    let id = &cursor.input[start..cursor.pos];
    if !is_id(id) {
        return Err(Fault::token(start, cursor.pos, "an id of four hexadecimal numbers joined by `-`"));
    }
    Ok(Root::Object(String::from_utf8(id.to_vec()).expect("hexadecimal digits and dashes")))
}

/// Four numbers of at most 32 bits; leading zeros are fine (http-api.md 6.2).
fn is_id(id: &[u8]) -> bool {
    let mut parts = 0;
    id.split(|b| *b == b'-').all(|part| {
        parts += 1;
        let zeros = part.iter().take_while(|b| **b == b'0').count();
        !part.is_empty() && part.len() - zeros <= 8
    }) && parts == 4
}

/// What follows a slash.
fn slash(cursor: &mut Cursor<'_>) -> Result<Step, Problem> {
    if cursor.eat(b'*') {
        return last(cursor, Step::AllChildren);
    }
    if !cursor.eat(b'@') {
        let start = cursor.pos;
        let key = literal::read(cursor)?;
        if key.bytes.is_empty() {
            return Err(Fault::expected(start, "a key (empty keys are not allowed)").into());
        }
        if key.plain
            && let Some(position) = literal::list_position(&key.bytes)
        {
            return Ok(position);
        }
        return Ok(Step::Child(bounded(key.bytes, start)?));
    }
    if cursor.eat(b'*') {
        return last(cursor, Step::AllUserAttributes);
    }
    let start = cursor.pos;
    let name = literal::read(cursor)?;
    match name.bytes.is_empty() {
        true => last(cursor, Step::AllAttributes),
        false => Ok(Step::Attribute(bounded(name.bytes, start)?)),
    }
}

fn bounded(key: Bytes, offset: usize) -> Result<Bytes, Problem> {
    if key.len() > MAX_KEY_LENGTH {
        return Err(Problem::KeyTooLong { length: key.len(), offset });
    }
    Ok(key)
}

/// A step that nothing may follow.
fn last(cursor: &Cursor<'_>, step: Step) -> Result<Step, Problem> {
    if cursor.peek().is_none() {
        return Ok(step);
    }
    let expected = match step {
        Step::AllAttributes => "an attribute name or the end of the path after `/@`",
        _ => "the end of the path after `*`",
    };
    Err(Fault::expected(cursor.pos, expected).into())
}
