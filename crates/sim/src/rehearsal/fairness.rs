//! How well the order of entering follows the order of arriving.
//!
//! Lives here: Spearman's rank correlation over all who entered; 1 is "first come, first served"
//! to the last place. Stays out: what would be fair between lanes; that is the weights' business.

/// Per lane, by number: (place in the sequence of all joins, place in the sequence of all
/// admissions; anything from `admissions` up means "did not enter"). Neither sequence has ties.
pub(super) fn spearman(lanes: &[(&[u32], &[u32])], admissions: u32) -> Option<f64> {
    let mut at = vec![0usize; lanes.len()];
    let (mut rank, mut sum_of_squares) = (0u32, 0u128);
    // Joins ascend within each lane, so merging the lanes yields everyone in order of arrival.
    while let Some(lane) =
        (0..lanes.len()).filter(|&l| at[l] < lanes[l].0.len()).min_by_key(|&l| lanes[l].0[at[l]])
    {
        let admitted = lanes[lane].1[at[lane]];
        at[lane] += 1;
        if admitted < admissions {
            let difference = u128::from(rank.abs_diff(admitted));
            sum_of_squares += difference * difference;
            rank += 1;
        }
    }
    let n = f64::from(rank);
    (rank > 1).then(|| 1.0 - 6.0 * sum_of_squares as f64 / (n * (n * n - 1.0)))
}
