fn main() {
    gpustub_build::finalize();
}
