use consign_core_api::spi::{Completion, PublishReply};

fn twice(done: Completion<PublishReply>, one: PublishReply, two: PublishReply) {
    done.resolve(one);
    done.resolve(two);
}

fn main() {}
