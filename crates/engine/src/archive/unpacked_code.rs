//! Device code of fat objects, unpacked into one view for each target.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet, HashSet};

use gpustub_core::diag::{Diagnostic, LIMIT_EXCEEDED, MALFORMED_LIBRARY, NOTHING_UNPACKED};
use gpustub_core::manifest::is_part_name;
use gpustub_core::offload::{
    CodeKind, Compression, Container, ContainerFormat, Entry, Model, containers,
    without_device_code,
};
use gpustub_superarchive::{Definition, Input, Layer, LayerId, View, ViewId, definitions};

/// Name of the view of host code.
pub const HOST_VIEW: &str = "host";

/// Limit on the code that is decompressed, in all.
const MAX_DECOMPRESSED: usize = 4 << 30;

/// Function that decompresses code of the stated size; `None` if it is damaged, or compressed by a method that the
/// caller has not.
pub type Decompress<'f> = &'f dyn Fn(Compression, &[u8], usize) -> Option<Vec<u8>>;

/// Members of fat layers by target, from which the layers of a super-archive borrow.
#[derive(Default)]
pub struct UnpackedCode<'d> {
    layers: Vec<UnpackedLayer<'d>>,
    targets: BTreeSet<String>,
    /// Host objects whose device code is in the views of its targets.
    unpacked: HashSet<*const [u8]>,
    decompressed: usize,
}

/// Host and device code of one layer.
struct UnpackedLayer<'d> {
    name: String,
    interposable: bool,
    host: Vec<Member<'d>>,
    devices: BTreeMap<String, Vec<Member<'d>>>,
}

struct Member<'d> {
    name: Cow<'d, [u8]>,
    data: Cow<'d, [u8]>,
    /// Symbols of a host object; those of other members follow from their contents.
    symbols: Option<Vec<Definition<'d>>>,
}

/// Layers and views of a super-archive.
pub struct UnpackedViews<'u> {
    /// Layers, each of one target.
    pub layers: Vec<Layer<'u>>,
    /// The view of the host, if it has members, and one for each target.
    pub views: Vec<View>,
    /// The view of the host.
    pub host: Option<ViewId>,
}

impl<'d> UnpackedCode<'d> {
    /// Unpacks the members of layers. A member keeps its name in all views.
    ///
    /// # Errors
    ///
    /// If compressed code is damaged or exceeds the limit.
    pub fn new(
        layers: Vec<Layer<'d>>,
        decompress: Decompress<'_>,
    ) -> Result<Self, Box<Diagnostic>> {
        let mut code = Self::default();
        for layer in layers {
            let mut unpacked = UnpackedLayer {
                name: layer.name,
                interposable: layer.interposable,
                host: Vec::new(),
                devices: BTreeMap::new(),
            };
            for member in layer.members {
                code.add(&mut unpacked, member, decompress)?;
            }
            code.targets.extend(unpacked.devices.keys().cloned());
            code.layers.push(unpacked);
        }
        Ok(code)
    }

    fn add(
        &mut self,
        layer: &mut UnpackedLayer<'d>,
        member: Input<'d>,
        decompress: Decompress<'_>,
    ) -> Result<(), Box<Diagnostic>> {
        let mut host = Cow::Borrowed(member.data);
        let mut symbols = Some(member.symbols);
        let mut has_host_code = true;
        let mut is_complete = true;
        let mut pieces = Vec::new();
        for container in containers(member.data).take(MAX_CONTAINERS) {
            let bundle;
            let container_pieces = match (container.compression, container.compressed()) {
                (Some(method), Some(compressed)) => {
                    let size = container.unpacked_size;
                    bundle = self
                        .decompress(decompress, method, compressed, size)
                        .map_err(|error| error.of(layer, &member.name, &container))?;
                    let inner: Vec<Container<'_>> = containers(&bundle).take(1).collect();
                    self.pieces(&inner, decompress)
                        .map_err(|error| error.of(layer, &member.name, &container))?
                        .into_iter()
                        .map(Piece::into_owned)
                        .collect()
                }
                _ => self
                    .pieces(std::slice::from_ref(&container), decompress)
                    .map_err(|error| error.of(layer, &member.name, &container))?,
            };
            is_complete &= container.is_complete && !container.is_newer();
            let is_file = container.section.is_empty();
            has_host_code &= !is_file;
            for piece in container_pieces {
                match piece.target {
                    Target::Host if is_file => {
                        has_host_code = true;
                        (host, symbols) = (piece.data, None);
                    }
                    // The code is that of the object.
                    Target::Host => {}
                    Target::Device(target) => pieces.push((target, piece.data)),
                    Target::Unknown => is_complete = false,
                }
            }
        }
        let is_unpacked = is_complete && !pieces.is_empty();
        if !is_unpacked {
            // Warnings about such a member name what is wrong with it.
            (host, has_host_code) = (Cow::Borrowed(member.data), true);
        } else if let Some(rest) = without_device_code(&host) {
            host = Cow::Owned(rest);
        }
        for (target, data) in pieces {
            layer.devices.entry(target).or_default().push(Member {
                name: member.name.clone(),
                data,
                symbols: None,
            });
        }
        if has_host_code {
            if is_unpacked {
                self.unpacked.insert(std::ptr::from_ref(&*host));
            }
            layer.host.push(Member {
                name: member.name,
                data: host,
                symbols,
            });
        }
        Ok(())
    }

    /// Code of the entries of containers.
    fn pieces<'c>(
        &mut self,
        containers: &[Container<'c>],
        decompress: Decompress<'_>,
    ) -> Result<Vec<Piece<'c>>, Fault> {
        let mut pieces = Vec::new();
        for container in containers {
            if matches!(
                container.format,
                ContainerFormat::Kpack | ContainerFormat::KpackReference
            ) {
                continue;
            }
            for entry in &container.entries {
                let code = container.code(entry).ok_or(Fault::Damaged)?;
                if entry.code == CodeKind::Empty || entry.model == Model::Host && code.len() <= 1 {
                    continue;
                }
                let target = Target::of(entry);
                let data = match entry.compression {
                    Some(method) if target != Target::Unknown => Cow::Owned(self.decompress(
                        decompress,
                        method,
                        code,
                        entry.unpacked_size,
                    )?),
                    _ => Cow::Borrowed(code),
                };
                pieces.push(Piece { target, data });
            }
        }
        Ok(pieces)
    }

    fn decompress(
        &mut self,
        decompress: Decompress<'_>,
        method: Compression,
        compressed: &[u8],
        size: usize,
    ) -> Result<Vec<u8>, Fault> {
        self.decompressed = self.decompressed.saturating_add(size);
        if self.decompressed > MAX_DECOMPRESSED {
            return Err(Fault::TooLarge);
        }
        decompress(method, compressed, size).ok_or(Fault::Compressed(method))
    }

    /// Whether views have the symbols of all code of a member.
    pub fn has_all_of(&self, member: &Input<'_>) -> bool {
        self.unpacked.contains(&std::ptr::from_ref(member.data))
    }

    /// Whether layers were unpacked.
    pub fn has_layers(&self) -> bool {
        !self.layers.is_empty()
    }

    /// A warning if there is no device code.
    pub fn nothing_unpacked(&self) -> Option<Diagnostic> {
        self.targets.is_empty().then(|| {
            Diagnostic::warning(
                &NOTHING_UNPACKED,
                "the inputs have no device code that can be unpacked",
            )
            .help("give static libraries of fat objects, or build views without `unpack`")
        })
    }

    /// The layers and views: those of the host, then of each target in the order of their names.
    ///
    /// # Errors
    ///
    /// If code is malformed.
    pub fn views(&self) -> Result<UnpackedViews<'_>, Box<Diagnostic>> {
        let mut result = UnpackedViews {
            layers: Vec::new(),
            views: Vec::new(),
            host: None,
        };
        self.add_view(&mut result, HOST_VIEW, |layer| Some(&layer.host))?;
        if !result.views.is_empty() {
            result.host = Some(ViewId(0));
        }
        for target in &self.targets {
            self.add_view(&mut result, target, |layer| layer.devices.get(target))?;
        }
        Ok(result)
    }

    fn add_view<'u>(
        &'u self,
        result: &mut UnpackedViews<'u>,
        name: &str,
        members: impl Fn(&'u UnpackedLayer<'d>) -> Option<&'u Vec<Member<'d>>>,
    ) -> Result<(), Box<Diagnostic>> {
        let mut layers = Vec::new();
        for layer in &self.layers {
            let mut inputs = Vec::new();
            for member in members(layer).into_iter().flatten() {
                inputs.push(member.input().map_err(|error| {
                    let member = String::from_utf8_lossy(&member.name);
                    let message = format!(
                        "layer `{}`: code of `{member}` for {name}: {error}",
                        layer.name
                    );
                    Diagnostic::error(&MALFORMED_LIBRARY, message).help(error.help())
                })?);
            }
            if !inputs.is_empty() {
                layers.push(LayerId(result.layers.len()));
                result.layers.push(Layer {
                    interposable: layer.interposable,
                    ..Layer::new(&layer.name, inputs)
                });
            }
        }
        if !layers.is_empty() {
            result.views.push(View {
                name: name.to_owned(),
                layers,
            });
        }
        Ok(())
    }
}

/// Limit above the containers of a member: an object has one for each target, a linked one for each object.
const MAX_CONTAINERS: usize = 1 << 16;

impl Member<'_> {
    fn input(&self) -> Result<Input<'_>, gpustub_superarchive::Error> {
        Ok(Input {
            name: Cow::Borrowed(&self.name),
            data: &self.data,
            symbols: match &self.symbols {
                Some(symbols) => symbols.clone(),
                None => definitions(&self.data)?,
            },
        })
    }
}

/// Code of an entry.
struct Piece<'c> {
    target: Target,
    data: Cow<'c, [u8]>,
}

impl Piece<'_> {
    fn into_owned<'o>(self) -> Piece<'o> {
        Piece {
            target: self.target,
            data: Cow::Owned(self.data.into_owned()),
        }
    }
}

#[derive(PartialEq, Eq)]
enum Target {
    Host,
    Device(String),
    /// Code without a target, or in a form that no tool but its maker's reads.
    Unknown,
}

impl Target {
    /// The name of the view is the architecture; the processor of the triple where code is for all of a kind (SPIR-V).
    fn of(entry: &Entry) -> Self {
        let processor = entry.triple.split('-').next().unwrap_or_default();
        let name = match &*entry.arch {
            "" => processor,
            arch => arch,
        };
        match entry.model {
            Model::Host => Self::Host,
            // `fatbinary` scrambles this code.
            _ if entry.code == CodeKind::Lto => Self::Unknown,
            _ if name == HOST_VIEW || !is_part_name(name) => Self::Unknown,
            _ => Self::Device(name.to_owned()),
        }
    }
}

/// Reason why code cannot be unpacked.
enum Fault {
    Damaged,
    Compressed(Compression),
    TooLarge,
}

impl Fault {
    fn of(
        self,
        layer: &UnpackedLayer<'_>,
        member: &[u8],
        container: &Container<'_>,
    ) -> Box<Diagnostic> {
        let member = String::from_utf8_lossy(member);
        let subject = format!("layer `{}`: {} in `{member}`", layer.name, container.format);
        Box::new(match self {
            Self::Damaged => Diagnostic::error(&MALFORMED_LIBRARY, format!("{subject} is damaged"))
                .help("compile or unpack the file again"),
            Self::Compressed(method) => {
                let message = format!("{subject} cannot be decompressed ({method})");
                Diagnostic::error(&MALFORMED_LIBRARY, message).help(
                    "if it is intact, write the archive with `cargo gpustub archive build`, or compile without \
                     `--offload-compress`",
                )
            }
            Self::TooLarge => Diagnostic::error(
                &LIMIT_EXCEEDED,
                format!("{subject}: more than 4 GiB of compressed code"),
            )
            .help("unpack fewer libraries at once"),
        })
    }
}
