//! Where everything goes.

use std::collections::HashSet;
use std::io::{self, IoSlice, Write};

use gpustub_archive::TRAILER;

use super::Input;
use super::ar::{self, Index, Names};
use super::carrier::Carrier;
use super::tables::{ALIGN, Place, Tables, TooLarge};

/// The archive in pieces: bytes made here, and the contents of members, by their indices.
#[derive(Debug, Default)]
pub struct Layout {
    pub size: u64,
    pieces: Vec<Piece>,
}

#[derive(Debug)]
enum Piece {
    Bytes(Vec<u8>),
    Member(usize),
}

/// The largest size that stands in a member's header: ten digits.
const LARGEST: u64 = 9_999_999_999;

/// The tables and the members behind them, and where they are.
struct Blob {
    tables: Tables,
    /// The members behind the tables, and how far behind the beginning of these.
    hidden: Vec<(usize, u64)>,
    size: u64,
    carrier: Carrier,
}

impl Blob {
    fn of(members: &[&Input<'_>], ordinary: &[usize], tables: Tables) -> Self {
        let seen: HashSet<usize> = ordinary.iter().copied().collect();
        let mut size = tables.size();
        let hidden = (0..members.len()).filter(|at| !seen.contains(at));
        let hidden = hidden.map(|member| {
            let at = size.next_multiple_of(ALIGN);
            size = at + members[member].data.len() as u64;
            (member, at)
        });
        let hidden = hidden.collect();
        let all: Vec<_> = ordinary.iter().map(|&at| members[at]).collect();
        Self {
            carrier: Carrier::of(&all, size),
            tables,
            hidden,
            size,
        }
    }
}

impl Layout {
    /// Of an archive with these members, of which those are ordinary ones; the rest is behind the
    /// tables.
    pub fn new(
        members: &[&Input<'_>],
        ordinary: &[usize],
        tables: Option<Tables>,
    ) -> Result<Self, TooLarge> {
        let mut blob = tables.map(|tables| Blob::of(members, ordinary, tables));
        let shown: Vec<_> = ordinary.iter().map(|&at| members[at]).collect();
        let names = Names::of(shown.iter().map(|member| &*member.name));
        let sizes: Vec<u64> = shown.iter().map(|m| m.data.len() as u64).collect();

        let mut index = Index::of(&shown, false);
        let mut frame = Frame::of(&index, &names, &sizes, blob.as_ref());
        if frame.size > u32::MAX.into() {
            index = Index::of(&shown, true);
            frame = Frame::of(&index, &names, &sizes, blob.as_ref());
        }
        if frame.largest > LARGEST {
            return Err(TooLarge);
        }

        let mut layout = Self::default();
        let headers: Vec<_> = (names.fields.iter().zip(&sizes))
            .map(|(name, &size)| ar::header(name, size))
            .collect();
        layout.bytes(ar::MAGIC);
        layout.bytes(&ar::header(index.name(), frame.index_size));
        layout.piece(index.bytes(&frame.offsets));
        let blob = blob.take().map(|blob| {
            let mut places = vec![None; members.len()];
            for ((&member, at), header) in ordinary.iter().zip(&frame.offsets).zip(&headers) {
                let at = at + ar::HEADER_SIZE;
                places[member] = Some(Place::Ordinary {
                    at,
                    header: *header,
                });
            }
            for &(member, at) in &blob.hidden {
                places[member] = Some(Place::Hidden { at });
            }
            let places: Vec<Place> = places.into_iter().flatten().collect();
            let tables = blob.tables.finish(&places, blob.size, frame.size);
            (tables, blob.hidden, blob.carrier, blob.size)
        });
        let mut carried = None;
        if let Some((tables, hidden, kind, size)) = blob {
            match kind {
                Carrier::Index => {
                    layout.pad_to(frame.blob_at);
                    layout.blob(tables, &hidden, members);
                    layout.bytes(
                        &(frame.blob_at - ar::MAGIC.len() as u64 - ar::HEADER_SIZE).to_le_bytes(),
                    );
                    layout.bytes(&TRAILER);
                }
                file => carried = Some((file, tables, hidden, size)),
            }
        }
        layout.pad();
        if frame.has_names {
            layout.bytes(&ar::header("//", names.long.len() as u64));
            layout.bytes(&names.long);
            layout.pad();
        }
        if let Some((file, tables, hidden, size)) = carried {
            let at = layout.size + ar::HEADER_SIZE;
            let name = format!("{}/", file.name());
            layout.bytes(&ar::header(&name, file.size(at, size)));
            layout.bytes(&file.head(at, size));
            layout.blob(tables, &hidden, members);
            layout.bytes(&file.tail(at, size));
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

    fn member(&mut self, index: usize, members: &[&Input<'_>]) {
        self.size += members[index].data.len() as u64;
        self.pieces.push(Piece::Member(index));
    }

    fn blob(&mut self, tables: Vec<u8>, hidden: &[(usize, u64)], members: &[&Input<'_>]) {
        let start = self.size;
        self.piece(tables);
        for &(member, at) in hidden {
            self.pad_to(start + at);
            self.member(member, members);
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
    pub fn write(&self, members: &[&Input<'_>], out: &mut impl Write) -> io::Result<()> {
        let pieces = self.pieces.iter().map(|piece| match piece {
            Piece::Bytes(bytes) => IoSlice::new(bytes),
            Piece::Member(index) => IoSlice::new(members[*index].data),
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
    /// Where the tables begin, if the index carries them.
    blob_at: u64,
    /// Whether there is a member `//`.
    has_names: bool,
    /// Of the headers of ordinary members.
    offsets: Vec<u64>,
    size: u64,
    /// The largest member.
    largest: u64,
}

impl Frame {
    fn of(index: &Index<'_>, names: &Names, sizes: &[u64], blob: Option<&Blob>) -> Self {
        let index_at = ar::MAGIC.len() as u64 + ar::HEADER_SIZE;
        let blob_at = (index_at + index.size()).next_multiple_of(ALIGN);
        let index_size = match blob {
            Some(blob) if blob.carrier == Carrier::Index => {
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
        if let Some(blob) = blob.filter(|blob| blob.carrier != Carrier::Index) {
            let size = blob.carrier.size(at + ar::HEADER_SIZE, blob.size);
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
