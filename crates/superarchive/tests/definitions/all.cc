// Definitions that only C++ has, of which linkers keep one.
template <class T> struct Holder {
  static T value;
  virtual T get() { return value; }
  virtual ~Holder() {}
};
template <class T> T Holder<T>::value = 1;
inline int shared(int n) {
  static int count = 0;
  return count += n;
}
inline int inline_variable = 3;
template struct Holder<long>;
namespace { int local = 1; }
struct Plain { Plain(); ~Plain(); int n; };
Plain::Plain() : n(shared(local)) {}
Plain::~Plain() {}
Plain global;
int use(Holder<int> *holder) { return holder->get() + inline_variable; }
void operator delete(void *, decltype(sizeof(0))) noexcept {}
void operator delete(void *) noexcept {}
