use consign_core_api::spi::{Completion, PublishReply};

fn both(done: Completion<PublishReply>, reply: PublishReply) {
    let _key = done.into_raw();
    done.resolve(reply);
}

fn main() {}
