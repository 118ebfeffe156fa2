//! `millpond token`.

use super::epilogue;
use crate::units::parse_span;
use clap::{Args, Subcommand};
use vocab::Span;

/// `millpond token ...`.
#[derive(Subcommand, Clone, Debug)]
pub enum TokenCommand {
    /// Create a token and print it
    ///
    /// It is shown once: the server keeps only its SHA-256. Without --ttl it has no end.
    Create(TokenCreateArgs),
    /// List tokens: their SHA-256, age, end and description
    List(TokenUserArgs),
    /// Replace a token by a new one and print that
    ///
    /// The new token has the same description, and is valid for as long as the old one was at its beginning
    /// unless --ttl says otherwise. The old one ends at once, or after --grace.
    Rotate(TokenRotateArgs),
    /// Revoke a token: it is refused from then on
    Revoke(TokenRevokeArgs),
}

/// `millpond token create`.
#[derive(Args, Clone, Debug)]
#[command(after_help = epilogue![
    "millpond token create --ttl 24h",
    "millpond token create --user robot --ttl 90d --description 'nightly build'",
])]
pub struct TokenCreateArgs {
    /// Whose token [default: your own]
    #[arg(long, value_name = "NAME")]
    pub user: Option<String>,
    /// Time until the end of the token, e.g. 24h or 90d
    #[arg(long, value_name = "TIME", value_parser = parse_span)]
    pub ttl: Option<Span>,
    /// What it is for
    #[arg(long, value_name = "TEXT")]
    pub description: Option<String>,
}

/// `millpond token list`.
#[derive(Args, Clone, Debug)]
#[command(after_help = epilogue!["millpond token list", "millpond token list --user robot --json"])]
pub struct TokenUserArgs {
    /// Whose tokens [default: your own]
    #[arg(long, value_name = "NAME")]
    pub user: Option<String>,
}

/// `millpond token rotate`.
#[derive(Args, Clone, Debug)]
#[command(after_help = epilogue![
    "MILLPOND_TOKEN=$(millpond token rotate)",
    "millpond token rotate SHA256 --user robot --grace 1h",
])]
pub struct TokenRotateArgs {
    /// SHA-256 of the token, from `millpond token list` [default: the token in MILLPOND_TOKEN]
    pub token_sha256: Option<String>,
    /// Whose token it is [default: your own]
    #[arg(long, value_name = "NAME")]
    pub user: Option<String>,
    /// Time until the end of the new token
    #[arg(long, value_name = "TIME", value_parser = parse_span)]
    pub ttl: Option<Span>,
    /// Time for which the old token stays valid
    #[arg(long, value_name = "TIME", value_parser = parse_span)]
    pub grace: Option<Span>,
}

/// `millpond token revoke`.
#[derive(Args, Clone, Debug)]
#[command(after_help = epilogue!["millpond token revoke SHA256", "millpond token revoke SHA256 --user robot"])]
pub struct TokenRevokeArgs {
    /// SHA-256 of the token, from `millpond token list`
    pub token_sha256: String,
    /// Whose token it is [default: your own]
    #[arg(long, value_name = "NAME")]
    pub user: Option<String>,
}
