//! Compressed members: what the writer compresses, and that both readers give the same bytes, also of damaged files.

use gpustub_archive::{Error, SuperArchive, zstd};
use gpustub_superarchive::{
    Binding, Decompressed, Definition, Input, Layer, LayerId, Plan, Request, View, ViewId, verify,
};
use gpustub_tests::Result;
use gpustub_tests::components::component;

use crate::differential::{Random, damage};
use crate::reader::walk_with;
use crate::walker::Walker;

/// Contents of members: three views of two members with similar contents each, and a small one that all have.
fn contents() -> Vec<Vec<u8>> {
    let mut random = Random(5);
    let mut contents = vec![b"tiny".to_vec()];
    for _ in 0..2 {
        let original: Vec<u8> = (0..3000)
            .map(|_| b"abcdefgh"[random.next_below(8)])
            .collect();
        for family in 0..3 {
            let mut data = original.clone();
            for _ in 0..10 * family {
                let offset = random.next_below(data.len());
                data[offset] ^= 0x55;
            }
            contents.push(data);
        }
    }
    contents
}

fn request(contents: &[Vec<u8>], default: Option<ViewId>) -> Request<'_> {
    let layer = |name: &str, members: &[(&'static str, usize)]| {
        let members = members.iter().map(|&(name, index)| Input {
            name: name.as_bytes().into(),
            data: &contents[index],
            symbols: vec![Definition {
                name: name.as_bytes().into(),
                binding: Binding::Strong,
            }],
        });
        Layer::new(name, members.collect())
    };
    Request {
        layers: (0..3)
            .map(|family| {
                layer(
                    &format!("gfx{family}"),
                    &[("cos", 1 + family), ("sin", 4 + family), ("tiny", 0)],
                )
            })
            .collect(),
        views: (0..3)
            .map(|family| View {
                name: format!("gfx{family}"),
                layers: vec![LayerId(family)],
            })
            .collect(),
        default,
    }
}

fn bytes_of(plan: &Plan<'_, '_>) -> Vec<u8> {
    let mut bytes = Vec::new();
    plan.write(&mut bytes).expect("memory");
    bytes
}

fn compressed(default: Option<ViewId>) -> Vec<u8> {
    let contents = contents();
    let request = request(&contents, default);
    let plan = Plan::compressed(&request).expect("a sound request");
    bytes_of(&plan)
}

/// Contents with a base that have another name in a later view are no base themselves.
#[test]
fn bases_have_no_base() -> Result<()> {
    let contents = contents();
    let mut request = request(&contents, None);
    let views: [&[(&str, usize)]; 4] = [
        &[("cos", 1)],
        &[("cos", 2)],
        &[("cosine", 2), ("tiny", 0)],
        &[("cosine", 3), ("tiny", 0)],
    ];
    (request.layers, request.views) = views
        .into_iter()
        .enumerate()
        .map(|(index, members)| {
            let members = members.iter().map(|&(name, content)| Input {
                name: name.as_bytes().into(),
                data: &contents[content],
                symbols: Vec::new(),
            });
            let view = View {
                name: format!("gfx{index}"),
                layers: vec![LayerId(index)],
            };
            (Layer::new("cos", members.collect()), view)
        })
        .unzip();
    let plan = Plan::compressed(&request).map_err(|error| format!("{error:?}"))?;
    verify(&SuperArchive::parse(&bytes_of(&plan))?)?;
    Ok(())
}

#[test]
fn members_of_hidden_views_are_compressed() -> Result<()> {
    let contents = contents();
    for default in [None, Some(ViewId(1))] {
        let request = request(&contents, default);
        let plan = |plan: Result<Plan<'_, '_>, _>| {
            plan.map(|plan| bytes_of(&plan))
                .map_err(|error| format!("{error:?}"))
        };
        let (plain, file) = (
            plan(Plan::new(&request))?,
            plan(Plan::compressed(&request))?,
        );
        assert_eq!(file, compressed(default), "the same bytes each time");
        assert!(
            file.len() * 3 < plain.len() * 2,
            "{} {}",
            file.len(),
            plain.len()
        );
        let archive = SuperArchive::parse(&file)?;
        verify(&archive)?;
        let mut decompressed = Decompressed::default();
        for code in archive.contents() {
            decompressed.add(&code?)?;
        }
        for (view, layer) in archive.views().zip(&request.layers) {
            for (member, input) in view?.members().zip(&layer.members) {
                let contents = member?.contents();
                let is_plain = contents.in_default_view() || *input.name == b"tiny"[..];
                assert_eq!(contents.is_compressed(), !is_plain);
                let expected = if is_plain {
                    Ok(input.data)
                } else {
                    Err(Error::Compressed {
                        contents: contents.index() as u32,
                    })
                };
                assert_eq!(contents.data(), expected);
                assert_eq!(decompressed.data(&contents), Ok(input.data));
                // Families after the first are a few bytes more than its contents.
                let is_first = contents.scratch_size()? == 0 && default.is_none();
                assert!(
                    is_plain || is_first || contents.stored_size() < 400,
                    "{contents:?}"
                );
            }
        }
    }
    Ok(())
}

#[test]
fn damaged_frames_are_refused() -> Result<()> {
    let file = compressed(None);
    let archive = SuperArchive::parse(&file)?;
    let frames = archive
        .contents()
        .filter_map(Result::ok)
        .filter(|contents| contents.is_compressed());
    let mut count = 0;
    for frame in frames {
        let start = (archive.tables_offset() + frame.offset()) as usize;
        for offset in (start..start + frame.stored_size() as usize).step_by(7) {
            let mut damaged = file.clone();
            damaged[offset] ^= 0x10;
            let archive = SuperArchive::parse(&damaged)?;
            archive.verify()?;
            // A reader ignores some bits of a frame's header.
            if verify(&archive).is_err() {
                count += 1;
            }
        }
    }
    assert!(count > 100, "{count}");
    Ok(())
}

#[test]
#[ignore = "needs libzstd: ./tests/run"]
fn c_header_and_rust_agree_on_compressed_and_damaged_files() -> Result<()> {
    agree(500)
}

#[test]
#[ignore = "needs libzstd, and minutes: ./tests/run --all"]
fn heavy_c_header_and_rust_agree_on_many_damaged_files() -> Result<()> {
    agree(20_000)
}

/// Compares the answers of C and Rust, whose libzstd are 1.5.4 and a newer one. The newer one refuses some damaged frames
/// that the older one unpacks to what was written, as the hash shows. Returns the number of these.
fn compare(c: &str, rust: &str, sound: &[String]) -> usize {
    assert_eq!(c.lines().count(), rust.lines().count());
    let mut differences = 0;
    for (c, rust) in c.lines().zip(rust.lines()).filter(|(c, rust)| c != rust) {
        let is_sound = sound
            .iter()
            .any(|answer| answer.lines().any(|line| line == c));
        assert!(is_sound && rust.contains(" decompression "), "{c} {rust}");
        differences += 1;
    }
    differences
}

/// Compares the readers for as many damaged files; the C program runs under sanitizers.
fn agree(mutations: usize) -> Result<()> {
    let root = component("zstd-1.5")?;
    let library = root.join("libzstd.so.1");
    let (include, library) = (
        format!("-I{}", root.join("include").display()),
        library.display().to_string(),
    );
    let walker = Walker::compile_with(
        &[
            "gcc",
            "-std=c99",
            "-O1",
            "-g",
            "-fsanitize=address,undefined",
            "-fno-sanitize-recover=all",
            "-DWITH_ZSTD",
            &include,
        ],
        &[&library],
    )?;
    let seeds = [compressed(None), compressed(Some(ViewId(0)))];
    let mut random = Random(46);
    let mut files = seeds.to_vec();
    for index in 0..mutations {
        let mut bytes = seeds[index % 2].clone();
        damage(&mut bytes, &mut random);
        files.push(bytes);
    }
    let (mut read, mut refused, mut differences) = (0, 0, 0);
    let sound: Vec<_> = seeds.iter().map(|seed| walk_with(seed, zstd)).collect();
    for files in files.chunks(1000) {
        let answers = walker.walk(files.iter().map(Vec::as_slice))?;
        assert_eq!(answers.len(), files.len());
        for (file, answer) in files.iter().zip(answers) {
            differences += compare(&answer, &walk_with(file, zstd), &sound);
            read += usize::from(answer.contains(" compressed ") && answer.ends_with("verify ok\n"));
            refused += usize::from(answer.contains(" decompression "));
        }
    }
    println!(
        "{mutations} damaged files: {read} verified, {refused} with frames that were refused, {differences} by one libzstd"
    );
    assert!(read >= 2 && refused > 0, "{read} {refused}");
    Ok(())
}
