# Completion of `cargo-gpustub` and `cargo gpustub` for bash 4 and newer:
#     source <(cargo gpustub completions bash)

# Sets COMPREPLY for the words after the name of the command; $1 is the word to complete.
_gpustub_complete() {
    local word=$1
    shift
    local words=("cargo-gpustub" "$@")
    local index=$((${#words[@]} - 1))
    words[index]=$word
    # `read` expands no patterns in names.
    IFS=$'\013' read -r -d '' -a COMPREPLY < <(
        COMPLETE=bash _CLAP_IFS=$'\013' _CLAP_COMPLETE_INDEX=$index \
            cargo-gpustub -- "${words[@]}" 2>/dev/null
    )
    local candidate
    for candidate in "${COMPREPLY[@]}"; do
        if [[ -e $candidate ]]; then
            # readline escapes spaces.
            compopt -o filenames 2>/dev/null
            break
        fi
    done
    if [[ ${COMPREPLY-} == *[=/] ]]; then
        compopt -o nospace 2>/dev/null
    fi
}

_gpustub() {
    _gpustub_complete "$2" "${COMP_WORDS[@]:1:COMP_CWORD}"
}

# Completes `cargo gpustub …`; everything else goes to the former completion of cargo.
_gpustub_in_cargo() {
    if [[ $COMP_CWORD -ge 2 && ${COMP_WORDS[1]} == gpustub ]]; then
        _gpustub_complete "$2" "${COMP_WORDS[@]:2:COMP_CWORD-1}"
    elif [[ $COMP_CWORD -eq 1 && -z $_gpustub_former ]]; then
        COMPREPLY=($(compgen -W gpustub -- "$2"))
    elif [[ -n $_gpustub_former ]]; then
        "$_gpustub_former" "$@"
    fi
}

# Prints the name of the function that completes `cargo`.
_gpustub_registered() {
    [[ $(complete -p cargo 2>/dev/null) =~ \ -F\ ([^\ ]+) ]] && printf '%s' "${BASH_REMATCH[1]}"
}

# bash-completion loads that of cargo only when it is first needed.
if [[ -z $(_gpustub_registered) ]]; then
    if declare -F _comp_load >/dev/null; then
        _comp_load cargo
    elif declare -F _completion_loader >/dev/null; then
        _completion_loader cargo
    fi 2>/dev/null
fi
if [[ $(_gpustub_registered) != _gpustub_in_cargo ]]; then
    _gpustub_former=$(_gpustub_registered)
fi

complete -o bashdefault -o default -F _gpustub cargo-gpustub
complete -o bashdefault -o default -F _gpustub_in_cargo cargo
