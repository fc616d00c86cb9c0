//! Reading a crate's table from its `codes.rs`.

use proc_macro2::{Delimiter, TokenStream, TokenTree};
use syn::LitStr;
use syn::parse::{Parse, ParseStream, Parser};

use crate::{Error, Result, source};

/// One code with cause and fix.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Row {
    pub(super) code: String,
    pub(super) cause: String,
    pub(super) fix: String,
}

impl Row {
    #[cfg(test)]
    pub(super) fn new(code: &str, cause: &str, fix: &str) -> Self {
        Self { code: code.into(), cause: cause.into(), fix: fix.into() }
    }

    pub(super) fn as_tuple(&self) -> (&str, &str, &str) {
        (&self.code, &self.cause, &self.fix)
    }
}

/// The body of the `codes!` macro: `NAME: "cause", "fix";` again and again.
struct Body(Vec<Row>);

impl Parse for Body {
    fn parse(input: ParseStream<'_>) -> syn::Result<Self> {
        let mut rows = Vec::new();
        while !input.is_empty() {
            let code = input.parse::<proc_macro2::Ident>()?.to_string();
            input.parse::<syn::Token![:]>()?;
            let cause = input.parse::<LitStr>()?.value();
            input.parse::<syn::Token![,]>()?;
            let fix = input.parse::<LitStr>()?.value();
            input.parse::<syn::Token![;]>()?;
            rows.push(Row { code, cause, fix });
        }
        Ok(Self(rows))
    }
}

/// Reads every `codes! { .. }` of a source text.
pub(super) fn parse(text: &str) -> Result<Vec<Row>> {
    let bodies = bodies(source::tokens(text)?);
    if bodies.is_empty() {
        return Err(Error::Workspace("no `codes!` here".into()));
    }
    let mut rows = Vec::new();
    for body in bodies {
        let Body(more) =
            Body::parse.parse2(body).map_err(|e| Error::Workspace(format!("in `codes!`: {e}")))?;
        rows.extend(more);
    }
    Ok(rows)
}

fn bodies(tokens: TokenStream) -> Vec<TokenStream> {
    let tokens: Vec<_> = tokens.into_iter().collect();
    tokens
        .windows(3)
        .filter_map(|three| match three {
            [TokenTree::Ident(name), TokenTree::Punct(bang), TokenTree::Group(body)]
                if name == "codes" && bang.as_char() == '!' && body.delimiter() == Delimiter::Brace =>
            {
                Some(body.stream())
            }
            _ => None,
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_texts_are_read_as_the_compiler_reads_them() {
        let text = r##"
            //! Docs with codes! { in } them.
            consign_core_api::codes! {
                ONE: "a \"quoted\" cause", r#"a raw fix"#;
                TWO: "broken \
                      over lines", "fix";
            }
        "##;
        let expected =
            [Row::new("ONE", "a \"quoted\" cause", "a raw fix"), Row::new("TWO", "broken over lines", "fix")];
        assert_eq!(parse(text).unwrap(), expected);
    }

    #[test]
    fn a_file_without_the_macro_and_a_malformed_row_are_refused() {
        assert!(parse("pub const X: u8 = 1;").is_err());
        assert!(parse("codes! { ONE: \"cause\"; }").is_err());
        assert!(parse("codes! { ONE \"cause\", \"fix\"; }").is_err());
    }
}
