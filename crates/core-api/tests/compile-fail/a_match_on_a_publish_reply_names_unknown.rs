use consign_core_api::spi::PublishReply;

fn look(reply: &PublishReply) -> bool {
    match reply {
        PublishReply::Accepted(_) => true,
        PublishReply::Refused(_) => false,
    }
}

fn main() {}
