#![deny(unused_must_use)]

use consign_core_api::PublishOutcome;

async fn publish_and_look_away(publish: impl Future<Output = PublishOutcome>) {
    publish.await;
}

fn main() {}
