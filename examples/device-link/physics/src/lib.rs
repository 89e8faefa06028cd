//! Sums, computed by kernels.

#[cfg(test)]
use gpustub_final_physics as _; // the device link of its CUDA code
use geometry as _; // CUDA code that the kernels call

unsafe extern "C" {
    fn physics_area(n: u32, sum: *mut f64) -> i32;
    fn physics_energy(n: u32, sum: *mut f64) -> i32;
}

/// Area of the triangles with legs i and i, for i below `n`, or the CUDA runtime's status.
///
/// ```
/// # use gpustub_final_physics as _;
/// if let Ok(area) = physics::area(4) {
///     assert_eq!(area, 7.0);
/// }
/// ```
pub fn area(n: u32) -> Result<f64, i32> {
    let mut sum = 0.0;
    // SAFETY: writes one number.
    let status = unsafe { physics_area(n, &mut sum) };
    if status == 0 { Ok(sum) } else { Err(status) }
}

/// Twice the area of the triangles with legs i and 2, for i below `n`.
pub fn energy(n: u32) -> Result<f64, i32> {
    let mut sum = 0.0;
    // SAFETY: writes one number.
    let status = unsafe { physics_energy(n, &mut sum) };
    if status == 0 { Ok(sum) } else { Err(status) }
}

/// Number of calls of the kernels into `geometry`.
pub fn calls() -> Result<u64, i32> {
    geometry::calls()
}
