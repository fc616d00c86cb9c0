//! Which member owns which unit: balanced, and moved as little as that allows.

use std::collections::BTreeMap;

use super::member::MemberId;

/// Returns the owner of each unit. Every member ends with as many as every other, give or take one, and keeps what
/// it has up to that. `members` are in the order in which they joined. O(units log members).
pub(crate) fn balance(owners: &[Option<MemberId>], members: &[MemberId]) -> Vec<Option<MemberId>> {
    let Some(share) = owners.len().checked_div(members.len()) else {
        return vec![None; owners.len()];
    };
    let mut extra = owners.len() % members.len();
    let mut held: BTreeMap<MemberId, usize> = members.iter().map(|member| (*member, 0)).collect();
    let mut targets: Vec<Option<MemberId>> = owners
        .iter()
        .map(|owner| {
            let member = (*owner)?;
            let count = held.get_mut(&member)?;
            if *count == share && extra > 0 {
                extra -= 1;
            } else if *count >= share {
                return None;
            }
            *count += 1;
            Some(member)
        })
        .collect();
    let mut free = targets.iter_mut().filter(|target| target.is_none());
    for wanted in [share, share + 1] {
        for member in members {
            let Some(count) = held.get_mut(member) else { continue };
            while *count < wanted && (wanted == share || extra > 0) {
                let Some(target) = free.next() else { return targets };
                *target = Some(*member);
                *count += 1;
                extra -= usize::from(wanted > share);
            }
        }
    }
    drop(free);
    targets
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn ids(numbers: impl IntoIterator<Item = u64>) -> Vec<MemberId> {
        numbers.into_iter().map(MemberId::new).collect()
    }

    proptest! {
        #[test]
        fn every_unit_has_an_owner_and_shares_differ_by_one_at_most(
            owners in proptest::collection::vec(proptest::option::of(0u64..6), 0..40),
            members in 1u64..6,
        ) {
            let owners: Vec<_> = owners.into_iter().map(|o| o.map(MemberId::new)).collect();
            let members = ids(0..members);
            let targets = balance(&owners, &members);
            let count = |m: &MemberId| targets.iter().filter(|t| **t == Some(*m)).count();
            prop_assert!(targets.iter().all(Option::is_some));
            let counts: Vec<_> = members.iter().map(count).collect();
            prop_assert!(counts.iter().max().unwrap() - counts.iter().min().unwrap() <= 1);
            prop_assert_eq!(balance(&targets, &members), targets, "a balanced assignment stays");
        }
    }

    #[test]
    fn a_newcomer_takes_only_what_the_others_have_too_much() {
        let owners: Vec<_> = ids([0, 0, 0, 0]).into_iter().map(Some).collect();
        let targets = balance(&owners, &ids([0, 1]));
        assert_eq!(targets.iter().filter(|t| **t == Some(MemberId::new(0))).count(), 2);
        assert_eq!(balance(&owners, &[]), vec![None; 4]);
    }
}
