//! `cargo testkit demo orders`: the example `orders` against a server that is killed in the middle and comes back.

use std::io::{BufRead, BufReader, Write};
use std::process::Stdio;

use crate::brokers::nats::Nats;
use crate::workspace::Workspace;
use crate::{Error, Result, process};

/// How many orders go out, and after how many of them the server is killed.
const ORDERS: u64 = 20_000;
const KILLED_AFTER: u64 = 7_000;

/// Builds the example, starts a server, feeds orders, kills the server (-9) in the middle, starts it again, and passes
/// on what the example prints. Blocks until the example ends.
///
/// # Errors
/// If anything cannot be started, or the example finds that an outcome was a lie.
pub fn orders(workspace: &Workspace) -> Result<()> {
    let mut build = process::cargo();
    build.current_dir(workspace.root());
    build.args(["build", "--locked", "--quiet", "--release", "--package", "consign", "--features", "nats"]);
    process::run(build.args(["--example", "orders"]))?;

    let mut server = Nats::start()?;
    let orders = orders_file()?;
    println!("a server at {}, {ORDERS} orders", server.url());
    let program = workspace.target().join("release/examples/orders");
    let mut child = std::process::Command::new(&program)
        .arg(orders.path())
        .env("CONSIGN_NATS_URL", server.url())
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .spawn()
        .map_err(Error::io(format!("starting {}", program.display())))?;
    let mut killed = false;
    let output = child.stdout.take().map(BufReader::new);
    for line in output.into_iter().flat_map(BufRead::lines) {
        let line = line.map_err(Error::io("reading the example's output"))?;
        println!("  {line}");
        let handed_over = line.strip_prefix("handed over ").and_then(|count| count.parse::<u64>().ok());
        if !killed && handed_over.is_some_and(|count| count >= KILLED_AFTER) {
            killed = true;
            server.kill9()?;
            println!("the server was killed (-9)");
            server.restart()?;
            println!("the server runs again");
        }
    }
    let status = child.wait().map_err(Error::io("waiting for the example"))?;
    if !killed {
        return Err(Error::Command(
            "the example ended before the server was killed: it proved nothing".into(),
        ));
    }
    if status.success() { Ok(()) } else { Err(Error::Command(format!("the example failed: {status}"))) }
}

/// Writes the orders, one JSON object a line.
fn orders_file() -> Result<tempfile::NamedTempFile> {
    let doing = "writing the orders";
    let mut file = tempfile::NamedTempFile::new().map_err(Error::io(doing))?;
    let mut text = String::new();
    for id in 0..ORDERS {
        let (customer, cents) = (id % 97, 100 + id % 9_900);
        text.push_str(&format!("{{\"id\":{id},\"customer\":\"c-{customer}\",\"cents\":{cents}}}\n"));
    }
    file.write_all(text.as_bytes()).map_err(Error::io(doing))?;
    Ok(file)
}
