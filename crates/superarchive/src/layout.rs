//! Layout of the file: the offset of each of its parts.

use std::collections::HashSet;
use std::io::{self, IoSlice, Write};

use gpustub_archive::TRAILER;

use crate::ar::{self, Index, MemberNames};
use crate::container::Container;
use crate::ids::{IndexVec, MemberId};
use crate::request::Input;
use crate::tables::{ALIGN, MemberLocation, Tables, TooLarge};

/// All members that may be in the file.
type Members<'m, 'd> = IndexVec<MemberId, &'m Input<'d>>;

/// The archive in pieces: bytes made here, and the contents of members.
#[derive(Debug, Default)]
pub struct Layout {
    pub size: u64,
    pieces: Vec<Piece>,
}

#[derive(Debug)]
enum Piece {
    Bytes(Vec<u8>),
    Member(MemberId),
}

/// The largest size that a member's header can hold: ten digits.
const MAX_MEMBER_SIZE: u64 = 9_999_999_999;

/// A member that only views other than the default one have.
struct HiddenMember {
    member: MemberId,
    /// Offset from the beginning of the tables.
    offset: u64,
}

/// The tables and the hidden members behind them.
struct Blob {
    tables: Tables,
    hidden: Vec<HiddenMember>,
    size: u64,
    container: Container,
}

impl Blob {
    fn new(members: &Members<'_, '_>, ordinary: &[MemberId], tables: Tables) -> Self {
        let in_default_view: HashSet<MemberId> = ordinary.iter().copied().collect();
        let mut size = tables.size();
        let hidden = members.ids();
        let hidden = hidden.filter(|member| !in_default_view.contains(member));
        let hidden = hidden.map(|member| {
            let offset = size.next_multiple_of(ALIGN);
            size = offset + members[member].data.len() as u64;
            HiddenMember { member, offset }
        });
        let hidden = hidden.collect();
        let inputs: Vec<_> = ordinary.iter().map(|&member| members[member]).collect();
        Self {
            container: Container::for_members(&inputs, size),
            tables,
            hidden,
            size,
        }
    }
}

impl Layout {
    /// The layout of an archive of these members. The `ordinary` ones are members of the archive;
    /// the others follow the tables.
    pub fn new(
        members: &Members<'_, '_>,
        ordinary: &[MemberId],
        tables: Option<Tables>,
    ) -> Result<Self, TooLarge> {
        let blob = tables.map(|tables| Blob::new(members, ordinary, tables));
        let inputs: Vec<_> = ordinary.iter().map(|&member| members[member]).collect();
        let names = MemberNames::new(inputs.iter().map(|input| &*input.name));
        let sizes: Vec<u64> = inputs.iter().map(|m| m.data.len() as u64).collect();

        let mut index = Index::new(&inputs, false);
        let mut frame = Frame::new(&index, &names, &sizes, blob.as_ref());
        if frame.size > u32::MAX.into() {
            index = Index::new(&inputs, true);
            frame = Frame::new(&index, &names, &sizes, blob.as_ref());
        }
        if frame.largest > MAX_MEMBER_SIZE {
            return Err(TooLarge);
        }

        let mut layout = Self::default();
        let headers: Vec<_> = (names.fields.iter().zip(&sizes))
            .map(|(name, &size)| ar::header(name, size))
            .collect();
        layout.bytes(ar::MAGIC);
        layout.bytes(&ar::header(index.name(), frame.index_size));
        layout.piece(index.bytes(&frame.offsets));
        let blob = blob.map(|blob| {
            let mut locations = IndexVec::from_elem(None, members.len());
            for ((&member, offset), header) in ordinary.iter().zip(&frame.offsets).zip(&headers) {
                locations[member] = Some(MemberLocation::Ordinary {
                    at: offset + ar::HEADER_SIZE,
                    header: *header,
                });
            }
            for one in &blob.hidden {
                locations[one.member] = Some(MemberLocation::Hidden { at: one.offset });
            }
            let locations = locations.iter().copied().flatten().collect();
            let tables = blob.tables.finish(&locations, blob.size, frame.size);
            (tables, blob.hidden, blob.container, blob.size)
        });
        let mut index_member = None;
        if let Some((tables, hidden, container, size)) = blob {
            if container == Container::Index {
                layout.pad_to(frame.blob_at);
                layout.blob(tables, &hidden, members);
                layout.bytes(
                    &(frame.blob_at - ar::MAGIC.len() as u64 - ar::HEADER_SIZE).to_le_bytes(),
                );
                layout.bytes(&TRAILER);
            } else {
                index_member = Some((container, tables, hidden, size));
            }
        }
        layout.pad();
        if frame.has_names {
            layout.bytes(&ar::header("//", names.long.len() as u64));
            layout.bytes(&names.long);
            layout.pad();
        }
        if let Some((container, tables, hidden, size)) = index_member {
            let at = layout.size + ar::HEADER_SIZE;
            let name = format!("{}/", container.name());
            layout.bytes(&ar::header(&name, container.size(at, size)));
            layout.bytes(&container.head(at, size));
            layout.blob(tables, &hidden, members);
            layout.bytes(&container.tail(at, size));
            layout.pad();
        }
        for (&member, header) in ordinary.iter().zip(headers) {
            layout.bytes(&header);
            layout.member(member, members);
            layout.pad();
        }
        debug_assert_eq!(layout.size, frame.size);
        Ok(layout)
    }

    /// Bytes that are too many to be copied.
    fn piece(&mut self, bytes: Vec<u8>) {
        self.size += bytes.len() as u64;
        self.pieces.push(Piece::Bytes(bytes));
    }

    /// Few bytes: they go with others before them.
    fn bytes(&mut self, bytes: &[u8]) {
        self.size += bytes.len() as u64;
        match self.pieces.last_mut() {
            Some(Piece::Bytes(last)) => last.extend(bytes),
            _ => self.pieces.push(Piece::Bytes(bytes.to_vec())),
        }
    }

    fn member(&mut self, member: MemberId, members: &Members<'_, '_>) {
        self.size += members[member].data.len() as u64;
        self.pieces.push(Piece::Member(member));
    }

    fn blob(&mut self, tables: Vec<u8>, hidden: &[HiddenMember], members: &Members<'_, '_>) {
        let start = self.size;
        self.piece(tables);
        for one in hidden {
            self.pad_to(start + one.offset);
            self.member(one.member, members);
        }
    }

    fn pad_to(&mut self, at: u64) {
        let missing = at.saturating_sub(self.size);
        self.bytes(&vec![0; missing as usize]);
    }

    /// To where the next member begins.
    fn pad(&mut self) {
        if ar::padding(self.size) == 1 {
            self.bytes(b"\n");
        }
    }

    /// Many pieces at once: files take them without a copy of each.
    pub fn write(&self, members: &Members<'_, '_>, out: &mut impl Write) -> io::Result<()> {
        let pieces = self.pieces.iter().map(|piece| match piece {
            Piece::Bytes(bytes) => IoSlice::new(bytes),
            Piece::Member(member) => IoSlice::new(members[*member].data),
        });
        let mut pieces: Vec<_> = pieces.collect();
        let mut left = &mut pieces[..];
        // Pieces without bytes are passed over; what is left then has some.
        IoSlice::advance_slices(&mut left, 0);
        while !left.is_empty() {
            match out.write_vectored(left) {
                Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
                Ok(written) => IoSlice::advance_slices(&mut left, written),
                Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                Err(e) => return Err(e),
            }
        }
        Ok(())
    }
}

/// Sizes and offsets, known before any byte is.
struct Frame {
    index_size: u64,
    /// Offset of the tables, if the archive symbol table contains them.
    blob_at: u64,
    /// Whether there is a member `//`.
    has_names: bool,
    /// Offset of the header of each ordinary member.
    offsets: Vec<u64>,
    size: u64,
    /// The largest member.
    largest: u64,
}

impl Frame {
    fn new(index: &Index<'_>, names: &MemberNames, sizes: &[u64], blob: Option<&Blob>) -> Self {
        let index_at = ar::MAGIC.len() as u64 + ar::HEADER_SIZE;
        let blob_at = (index_at + index.size()).next_multiple_of(ALIGN);
        let index_size = match blob {
            Some(blob) if blob.container == Container::Index => {
                blob_at + blob.size + 8 + TRAILER.len() as u64 - index_at
            }
            _ => index.size(),
        };
        let mut largest = index_size.max(sizes.iter().copied().max().unwrap_or(0));
        let mut at = ar::MAGIC.len() as u64 + ar::footprint(index_size);
        // gold expects something behind an index: where there is no member, the table of long names.
        let has_names = !names.long.is_empty() || sizes.is_empty();
        if has_names {
            at += ar::footprint(names.long.len() as u64);
        }
        if let Some(blob) = blob.filter(|blob| blob.container != Container::Index) {
            let size = blob.container.size(at + ar::HEADER_SIZE, blob.size);
            largest = largest.max(size);
            at += ar::footprint(size);
        }
        let offsets = sizes.iter().map(|&size| {
            let offset = at;
            at += ar::footprint(size);
            offset
        });
        let offsets = offsets.collect();
        Self {
            index_size,
            blob_at,
            has_names,
            offsets,
            size: at,
            largest,
        }
    }
}
