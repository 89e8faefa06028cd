//! Lanes of a warp.

/// Numbers of the bits set in a mask, in ascending order.
///
/// ```
/// assert_eq!(gpurpc::Lanes::from_mask(0b1010).collect::<Vec<u32>>(), [1, 3]);
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Lanes(u64);

impl Lanes {
    /// The lanes whose bit is set in `mask`.
    pub const fn from_mask(mask: u64) -> Self {
        Self(mask)
    }
}

impl Iterator for Lanes {
    type Item = u32;

    #[inline]
    fn next(&mut self) -> Option<u32> {
        if self.0 == 0 {
            return None;
        }
        let lane = self.0.trailing_zeros();
        self.0 &= self.0 - 1;
        Some(lane)
    }
}
