//! The page of codes.

use super::CrateCodes;

const HEAD: &str = "# Error codes

<!-- Made by `cargo testkit codes --write` from the tables in the sources; `cargo testkit test` compares. -->

Every refusal and every failure carries one of these codes. A code is API: it keeps its meaning, and may be matched,
counted and searched for. The texts beside it may change. Applications name codes of their own for the failures of
their handlers; those are not listed here.
";

/// Renders the page: a section per crate, its codes by name.
pub(super) fn render(crates: &[CrateCodes]) -> String {
    let mut page = HEAD.to_owned();
    for one in crates {
        page.push_str(&format!("\n## {}\n\n| code | cause | fix |\n|---|---|---|\n", one.name));
        let mut rows: Vec<_> = one.rows.iter().collect();
        rows.sort_by(|a, b| a.code.cmp(&b.code));
        for row in rows {
            page.push_str(&format!("| `{}` | {} | {} |\n", row.code, cell(&row.cause), cell(&row.fix)));
        }
    }
    page
}

/// A text that cannot end its cell or its line.
fn cell(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ").replace('|', "\\|")
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use super::super::table::Row;
    use super::*;

    #[test]
    fn codes_are_sorted_and_a_bar_or_a_line_break_does_not_end_the_cell() {
        let rows = vec![Row::new("B", "x | y", "z\nz"), Row::new("A", "a", "b")];
        let page = render(&[CrateCodes { name: "c".into(), folder: PathBuf::new(), rows }]);
        let expected =
            "\n## c\n\n| code | cause | fix |\n|---|---|---|\n| `A` | a | b |\n| `B` | x \\| y | z z |\n";
        assert!(page.ends_with(expected), "{page}");
    }
}
