fn main() {
    gpustub_build::build();
}
