use consign_core_api::NotConfirmed;

fn look(refused: &NotConfirmed) -> bool {
    match refused {
        NotConfirmed::Rejected(_) => true,
    }
}

fn main() {}
