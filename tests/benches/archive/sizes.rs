//! Size of one super-archive, compared with one archive per family.

use std::fs;
use std::path::Path;
use std::process::Command;

use gpustub_superarchive::write_archive;
use gpustub_tests::Result;
use gpustub_tests::command::succeed;
use gpustub_tests::measure::record;

use crate::data::{Set, plan};
use crate::{Library, families, inputs, views};

const FAMILIES: usize = 8;

pub fn print(library: &Library, sets: &[Set], work: &Path) -> Result<()> {
    println!("\nsizes: MB of {} for {FAMILIES} families", library.name);
    for common in [0, 500, 900] {
        let families = families(library, FAMILIES, common);
        let dir = work.join("families");
        fs::create_dir(&dir)?;
        let mut sum = 0;
        for (number, files) in families.iter().enumerate() {
            let inputs = inputs(files)?;
            let mut bytes = Vec::new();
            write_archive(&inputs, &mut bytes)?;
            sum += bytes.len() as u64;
            fs::write(dir.join(format!("gfx{number}.a")), bytes)?;
        }
        succeed(
            Command::new("python3")
                .args(["-m", "zipfile", "-c", "../all.zip", "."])
                .current_dir(&dir),
        )?;
        let zip = fs::metadata(work.join("all.zip"))?.len();
        fs::remove_dir_all(&dir)?;
        let request = views(&families)?;
        let plan = plan(&request)?;
        let unique: u64 = plan.contents_bytes();
        println!(
            "  {:3} % common: an archive each, or in a fat file {:6.1}   zip {:6.1}   super-archive {:6.1}, of which members {:6.1}",
            common / 10,
            sum as f64 / 1e6,
            zip as f64 / 1e6,
            plan.size() as f64 / 1e6,
            unique as f64 / 1e6
        );
    }
    let mut largest = 0.0;
    for set in sets {
        let sources = set.open()?;
        let request = set.request(&sources)?;
        let plan = plan(&request)?;
        let ratio = plan.size() as f64 / plan.contents_bytes() as f64;
        println!(
            "  {}: {} views, {ratio:.3} times the bytes of its members",
            set.name,
            set.view_count()
        );
        if set.name.starts_with("libclc") {
            largest = ratio.max(largest);
        }
    }
    record("libclc", &[("ratio", largest)])
}
