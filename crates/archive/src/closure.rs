//! Members that symbols need.

use crate::error::Error;
use crate::member::Member;
use crate::view::View;

/// The members of a view that symbols need: the closure of their references. The caller adds the
/// undefined symbols of each member, because it knows the format of its objects.
///
/// ```
/// use gpustub_archive::{Closure, Member, SuperArchive};
///
/// # fn undefined_symbols(_: &Member<'_>) -> [&'static str; 0] { [] }
/// # let bytes = include_bytes!(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/sample.a"));
/// let archive = SuperArchive::parse(bytes)?;
/// let view = archive.view("gfx1100")?.expect("a view");
/// let mut memory = vec![0; view.member_count()];
/// let mut closure = Closure::new(view, &mut memory).expect("enough memory");
/// assert!(closure.add("scale")?, "defined in this view");
/// let mut linked = Vec::new();
/// while let Some(member) = closure.next_member()? {
///     for symbol in undefined_symbols(&member) {
///         closure.add(symbol)?;
///     }
///     linked.push(member.name());
/// }
/// assert_eq!(linked, [b"scale.o"]);
/// # Ok::<(), gpustub_archive::Error>(())
/// ```
#[derive(Debug)]
pub struct Closure<'a, 'm> {
    view: View<'a>,
    /// For each member 0, or the position of the next one plus one; the last one refers to itself. The
    /// queue never repeats a member.
    links: &'m mut [u32],
    /// Positions of the queue's ends plus one; 0: the queue is empty.
    head: u32,
    tail: u32,
}

impl<'a, 'm> Closure<'a, 'm> {
    /// A closure without members. `None` if `memory` has fewer numbers than the view has members.
    pub fn new(view: View<'a>, memory: &'m mut [u32]) -> Option<Self> {
        let links = memory.get_mut(..view.member_count())?;
        links.fill(0);
        Some(Self {
            view,
            links,
            head: 0,
            tail: 0,
        })
    }

    /// Adds the member that defines a symbol, unless it was added before. Returns whether there is
    /// one. The search begins with the view's first layer, wherever the reference comes from.
    ///
    /// # Errors
    ///
    /// As [`View::find_symbol`].
    pub fn add(&mut self, symbol: impl AsRef<[u8]>) -> Result<bool, Error> {
        let Some(member) = self.view.find_symbol(symbol)? else {
            return Ok(false);
        };
        // Fits: the row has positions plus one.
        let position = member.position;
        let link = position.saturating_add(1);
        match self.links.get_mut(position as usize) {
            Some(next) if *next == 0 => *next = link,
            _ => return Ok(true),
        }
        if self.head == 0 {
            self.head = link;
        } else if let Some(next) = self.links.get_mut((self.tail - 1) as usize) {
            *next = link;
        }
        self.tail = link;
        Ok(true)
    }

    /// The next member, in the order in which they were added. `None`: the closure is complete.
    ///
    /// # Errors
    ///
    /// As [`View::member_at`].
    pub fn next_member(&mut self) -> Result<Option<Member<'a>>, Error> {
        let Some(position) = self.head.checked_sub(1) else {
            return Ok(None);
        };
        self.head = match self.links.get(position as usize) {
            Some(next) if self.tail != self.head => *next,
            _ => 0,
        };
        self.view.member_at(position as usize)
    }
}
