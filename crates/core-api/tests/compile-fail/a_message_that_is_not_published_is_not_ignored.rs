#![deny(unused_must_use)]

use consign_core_api::Message;

fn main() {
    Message::new("order").key("c-7");
}
