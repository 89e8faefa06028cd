fn main() {
    my_app::run();
}
