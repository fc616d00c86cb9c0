//! The figures of several runs, a line each.

use std::fmt;

use super::checker::Findings;

/// The figures of one run.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Row {
    /// What the line is called.
    pub name: String,
    /// What the checker found.
    pub findings: Findings,
}

/// A table of runs.
#[derive(Debug, Clone, Default)]
pub struct Table(Vec<Row>);

const HEAD: [&str; 17] = [
    "fault",
    "faults",
    "published",
    "confirmed",
    "repeated",
    "rejected",
    "amb.stored",
    "amb.absent",
    "dropped",
    "never sent",
    "duplicates",
    "settled",
    "unknown",
    "redelivered",
    "p50 ms",
    "max ms",
    "lies",
];

impl Table {
    /// Adds a run.
    pub fn add(&mut self, name: impl Into<String>, findings: Findings) {
        self.0.push(Row { name: name.into(), findings });
    }

    /// Returns the runs.
    #[must_use]
    pub fn rows(&self) -> &[Row] {
        &self.0
    }
}

/// `redelivered` counts deliveries after a settlement that said *processed*.
impl fmt::Display for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut lines = vec![HEAD.map(str::to_owned).to_vec()];
        lines.extend(self.0.iter().map(cells));
        let width = |column: usize| lines.iter().map(|line| line[column].chars().count()).max().unwrap_or(0);
        let widths: Vec<_> = (0..HEAD.len()).map(width).collect();
        for (number, line) in lines.iter().enumerate() {
            if number > 0 {
                f.write_str("\n")?;
            }
            for (cell, width) in line.iter().zip(&widths) {
                write!(f, "| {cell:<width$} ")?;
            }
            f.write_str("|")?;
            if number == 0 {
                f.write_str("\n")?;
                widths.iter().try_for_each(|width| write!(f, "|{:-<1$}", "", width + 2))?;
                f.write_str("|")?;
            }
        }
        Ok(())
    }
}

fn cells(row: &Row) -> Vec<String> {
    let (found, counts) = (&row.findings, row.findings.counts);
    let millis = |micros: u64| format!("{}.{:01}", micros / 1000, micros % 1000 / 100);
    let mut cells = vec![row.name.clone()];
    cells.extend(
        [
            counts.faults,
            counts.published,
            counts.confirmed,
            counts.repeated,
            counts.rejected,
            counts.ambiguous_present,
            counts.ambiguous_absent,
            counts.dropped,
            counts.never_sent,
            counts.duplicates,
            counts.settled,
            counts.settlement_unknown,
            counts.processed_redelivered,
        ]
        .map(|count| count.to_string()),
    );
    cells.extend([millis(found.time(50)), millis(found.time(100)), found.lies.len().to_string()]);
    cells
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_line_has_as_many_cells_as_the_head() {
        let mut table = Table::default();
        table.add("kill", Findings::default());
        let text = table.to_string();
        let lines: Vec<_> = text.lines().collect();
        assert_eq!(lines.len(), 3);
        assert!(lines.iter().all(|line| line.matches('|').count() == HEAD.len() + 1), "{text}");
    }
}
