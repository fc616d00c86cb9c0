//! Rust files as tokens, so that comments and strings cannot be taken for code.

use std::fs;
use std::path::{Path, PathBuf};

use proc_macro2::{Delimiter, TokenStream, TokenTree};

use crate::{Error, Result};

/// Lists the Rust files below a folder, sorted, without hidden folders and target folders.
///
/// # Errors
/// If a folder cannot be read.
pub fn rust_files(root: &Path) -> Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    let mut folders = vec![root.to_path_buf()];
    while let Some(folder) = folders.pop() {
        let failed = || Error::io(format!("reading {}", folder.display()));
        for entry in fs::read_dir(&folder).map_err(failed())? {
            let entry = entry.map_err(failed())?;
            let kind = entry.file_type().map_err(failed())?;
            let name = entry.file_name();
            let name = name.to_string_lossy();
            if kind.is_dir() && !name.starts_with('.') && !is_target(&name) {
                folders.push(entry.path());
            } else if kind.is_file() && name.ends_with(".rs") {
                files.push(entry.path());
            }
        }
    }
    files.sort();
    Ok(files)
}

fn is_target(name: &str) -> bool {
    name == "target" || name.starts_with("target-")
}

/// Reads a file.
///
/// # Errors
/// If it cannot be read, or is not UTF-8.
pub fn read(path: &Path) -> Result<String> {
    fs::read_to_string(path).map_err(Error::io(format!("reading {}", path.display())))
}

/// Splits a source text into tokens. Comments are gone, documentation is string literals.
///
/// # Errors
/// If the text is not Rust.
pub fn tokens(text: &str) -> Result<TokenStream> {
    text.parse().map_err(|e| Error::Workspace(format!("not Rust: {e}")))
}

/// Tells whether an identifier occurs as code.
#[must_use]
pub fn mentions(tokens: &TokenStream, name: &str) -> bool {
    tokens.clone().into_iter().any(|token| match token {
        TokenTree::Ident(ident) => ident == name,
        TokenTree::Group(group) => mentions(&group.stream(), name),
        TokenTree::Punct(_) | TokenTree::Literal(_) => false,
    })
}

/// Collects the identifiers that a production build uses: without imports, and without what is under `#[cfg(test)]`.
#[must_use]
pub fn used_identifiers(tokens: &TokenStream) -> Vec<String> {
    let mut used = Vec::new();
    collect(tokens.clone(), &mut used);
    used
}

fn collect(tokens: TokenStream, used: &mut Vec<String>) {
    let mut tokens = tokens.into_iter().peekable();
    while let Some(token) = tokens.next() {
        match token {
            TokenTree::Punct(punct) if punct.as_char() == '#' => {
                let test_only = matches!(tokens.peek(), Some(TokenTree::Group(group)) if is_cfg_test(group));
                if test_only {
                    // The item ends with its first body or its semicolon.
                    for token in tokens.by_ref() {
                        match token {
                            TokenTree::Group(group) if group.delimiter() == Delimiter::Brace => break,
                            TokenTree::Punct(punct) if punct.as_char() == ';' => break,
                            _ => {}
                        }
                    }
                }
            }
            // An import; `use<..>` in a bound is followed by `<`.
            TokenTree::Ident(ident)
                if ident == "use"
                    && !matches!(tokens.peek(), Some(TokenTree::Punct(punct)) if punct.as_char() == '<') =>
            {
                for token in tokens.by_ref() {
                    if matches!(&token, TokenTree::Punct(punct) if punct.as_char() == ';') {
                        break;
                    }
                }
            }
            TokenTree::Ident(ident) => used.push(ident.to_string()),
            TokenTree::Group(group) => collect(group.stream(), used),
            TokenTree::Punct(_) | TokenTree::Literal(_) => {}
        }
    }
}

fn is_cfg_test(group: &proc_macro2::Group) -> bool {
    group.delimiter() == Delimiter::Bracket
        && group.stream().to_string().split_whitespace().collect::<String>() == "cfg(test)"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn comments_and_strings_are_not_code() {
        let text = tokens("/// unsafe\n// unsafe\nfn f() { let s = \"unsafe\"; }").unwrap();
        assert!(!mentions(&text, "unsafe"));
        assert!(mentions(&tokens("fn f() { g(|| unsafe { h() }) }").unwrap(), "unsafe"));
    }

    #[test]
    fn imports_and_test_code_are_no_use() {
        let used = |text| used_identifiers(&tokens(text).unwrap());
        assert!(!used("use codes::{A, B}; fn f() {}").contains(&"A".to_owned()));
        assert!(!used("#[cfg(test)] mod tests { fn f() { A } }").contains(&"A".to_owned()));
        assert!(!used("#[cfg(test)] const X: Code = A; fn f() {}").contains(&"A".to_owned()));
        assert!(used("#[cfg(test)] mod tests { fn f() {} } fn g() { codes::A }").contains(&"A".to_owned()));
        assert!(used("fn g() -> impl Fn() + use<'_> { A }").contains(&"A".to_owned()));
        assert!(used("#[cfg(not(test))] fn g() { A }").contains(&"A".to_owned()));
    }

    #[test]
    fn hidden_and_target_folders_are_left_out() {
        let root = tempfile::tempdir().unwrap();
        for path in ["src/a.rs", "target/b.rs", "target-x/c.rs", ".git/d.rs", "src/deep/e.rs", "src/f.txt"] {
            let path = root.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, "").unwrap();
        }
        let names: Vec<_> = rust_files(root.path())
            .unwrap()
            .iter()
            .map(|path| path.strip_prefix(root.path()).unwrap().to_string_lossy().into_owned())
            .collect();
        assert_eq!(names, ["src/a.rs", "src/deep/e.rs"]);
    }
}
