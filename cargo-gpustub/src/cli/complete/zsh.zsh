#compdef cargo-gpustub
# Completion of `cargo-gpustub` and `cargo gpustub` for zsh: a file `_cargo-gpustub` in `fpath`, or
#     source <(cargo gpustub completions zsh)
# The completion of cargo calls `_cargo-gpustub` for the words after `cargo`.

_cargo-gpustub() {
    local -a arguments=("${(@)words[2,CURRENT]}") lines values=() directories=()
    local line
    lines=("${(@f)$(
        COMPLETE=zsh _CLAP_IFS=$'\n' _CLAP_COMPLETE_INDEX=$((CURRENT - 1)) \
            cargo-gpustub -- cargo-gpustub "${(@)arguments}" 2>/dev/null
    )}")
    for line in "${(@)lines}"; do
        case $line in
            '') ;;
            */) directories+=("${line%/}") ;;
            *) values+=("$line") ;;
        esac
    done
    (( $#directories )) && _describe -V directory directories -S / -r /
    (( $#values )) && _describe -V value values
    (( $#directories || $#values )) || _files
}

if [[ $funcstack[1] == _cargo-gpustub ]]; then
    _cargo-gpustub "$@"
elif (( $+functions[compdef] )); then
    compdef _cargo-gpustub cargo-gpustub
fi
