//! Formats results as text.

/// Checked sums over `n` triangles, or the reason why there are none.
pub fn report(n: u32) -> String {
    let sums = physics::area(n).and_then(|area| Ok((area, physics::energy(n)?, physics::calls()?)));
    match sums {
        Ok((area, energy, calls)) => {
            let n = u64::from(n);
            let squares: u64 = (0..n).map(|i| i * i).sum();
            let right = area == squares as f64 / 2.0
                && energy == (n * n.saturating_sub(1)) as f64
                && calls >= 2 * n;
            let verdict = if right { "all right" } else { "WRONG" };
            format!("area {area}, energy {energy}, {calls} device calls: {verdict}")
        }
        Err(status) => format!("no CUDA: status {status}"),
    }
}
