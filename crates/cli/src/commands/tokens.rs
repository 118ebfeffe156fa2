//! `token`.

use super::Session;
use crate::args::{Common, TokenCommand, TokenRotateArgs};
use crate::error::CliError;
use crate::views::{Done, Scalar, TokenTable};
use sha2::{Digest, Sha256};

pub fn run(session: &Session, common: &Common, command: TokenCommand) -> Result<(), CliError> {
    let client = &session.client;
    let whose = |user: Option<String>| user.map_or_else(|| client.current_user(), Ok);
    match command {
        TokenCommand::Create(args) => {
            let token = client.issue_token(&whose(args.user)?, args.ttl, args.description.as_deref())?;
            session.screen.show(&Scalar(token.into()))
        }
        TokenCommand::List(args) => {
            session.screen.show(&TokenTable { tokens: client.tokens(&whose(args.user)?)? })
        }
        TokenCommand::Rotate(args) => {
            let digest = digest_to_rotate(common, &args)?;
            let token = client.rotate_token(&whose(args.user)?, &digest, args.ttl, args.grace)?;
            session.screen.show(&Scalar(token.into()))
        }
        TokenCommand::Revoke(args) => {
            client.revoke_token(&whose(args.user)?, &args.token_sha256)?;
            session.screen.show(&Done { verb: "revoked", names: vec![args.token_sha256] })
        }
    }
}

/// SHA-256 of the token that is to be replaced.
fn digest_to_rotate(common: &Common, args: &TokenRotateArgs) -> Result<String, CliError> {
    if let Some(digest) = &args.token_sha256 {
        return Ok(digest.clone());
    }
    let token = common.token(|name| std::env::var(name).ok()).ok_or_else(|| {
        CliError::usage("name the SHA-256 of the token to rotate, or set MILLPOND_TOKEN to the token itself")
    })?;
    Ok(Sha256::digest(token.as_bytes()).iter().map(|byte| format!("{byte:02x}")).collect())
}
