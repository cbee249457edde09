//! The pictures in `icons/`: rendered from the sources that stand there now, complete, and told apart by shape alone.

use std::fmt::Write as _;

use sha2::{Digest, Sha256};

use crate::{read, root};

const STATES: [&str; 5] = ["working", "busy", "waiting", "needs-you", "off"];
const THEMES: [&str; 3] = ["light", "dark", "template"];
/// Pixels of the smallest panel that is common: shapes have to differ there.
const SMALL: usize = 16;

#[test]
fn the_rendered_icons_are_in_date() {
    let folder = root().join("icons");
    let list = read(&folder.join("rendered.sha256"));
    assert!(list.lines().count() > STATES.len() * THEMES.len(), "icons/rendered.sha256 is cut short");
    for line in list.lines() {
        let (want, name) = line.split_once("  ").expect("a digest and a name");
        let bytes = std::fs::read(folder.join(name)).unwrap_or_else(|e| panic!("icons/{name}: {e}"));
        let have = Sha256::digest(bytes).iter().fold(String::new(), |mut hex, byte| {
            let _ = write!(hex, "{byte:02x}");
            hex
        });
        assert!(have == want, "icons/{name} is not what icons/rendered.sha256 says: run `icons/render`");
    }
}

/// Opacity of a tray icon, drawn on a grid of `SMALL`², each cell 0 to 255.
fn shape(name: &str) -> Vec<u32> {
    let path = root().join("icons/tray").join(name);
    let file = std::fs::File::open(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    let mut reader = png::Decoder::new(std::io::BufReader::new(file)).read_info().expect("a PNG");
    let mut pixels = vec![0; reader.output_buffer_size().expect("a size")];
    let info = reader.next_frame(&mut pixels).expect("a picture");
    assert_eq!((info.width, info.height), (44, 44), "{name} is drawn for 22 points at double density");
    let channels = info.line_size / info.width as usize;
    assert!(matches!(channels, 2 | 4), "{name} is transparent around its shape");
    let side = info.width as usize;
    let (mut sums, mut counts) = (vec![0; SMALL * SMALL], vec![0; SMALL * SMALL]);
    for (at, pixel) in pixels.chunks_exact(channels).enumerate() {
        let cell = (at / side) * SMALL / side * SMALL + (at % side) * SMALL / side;
        sums[cell] += u32::from(pixel[channels - 1]);
        counts[cell] += 1;
    }
    sums.iter().zip(counts).map(|(sum, count)| sum / count).collect()
}

/// How much of the grid two shapes disagree about, in percent of the cells.
fn difference(one: &[u32], other: &[u32]) -> usize {
    one.iter().zip(other).filter(|(a, b)| a.abs_diff(**b) > 96).count() * 100 / one.len()
}

#[test]
fn every_tray_state_has_a_shape_of_its_own_in_every_theme() {
    for theme in THEMES {
        let shapes = STATES.map(|state| shape(&format!("{state}-{theme}.png")));
        for (at, one) in shapes.iter().enumerate() {
            for (other_at, other) in shapes.iter().enumerate().skip(at + 1) {
                let percent = difference(one, other);
                assert!(percent >= 8, "{} and {} ({theme}) differ in {percent} % only", STATES[at], STATES[other_at]);
            }
        }
    }
}

#[test]
fn a_state_has_the_same_shape_in_every_theme() {
    for state in STATES {
        let [light, dark, template] = THEMES.map(|theme| shape(&format!("{state}-{theme}.png")));
        assert_eq!(difference(&light, &dark), 0, "{state} differs between light and dark");
        assert_eq!(difference(&light, &template), 0, "{state} differs between light and template");
    }
}
