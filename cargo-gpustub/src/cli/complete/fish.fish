# Completion of `cargo-gpustub` and `cargo gpustub` for fish:
#     cargo gpustub completions fish > ~/.config/fish/conf.d/cargo-gpustub.fish

function __gpustub_complete
    set --local words (commandline --current-process --tokenize --cut-at-cursor)
    # `cargo gpustub …` is completed as `cargo-gpustub …`.
    if test "$words[1]" = cargo
        set --erase words[1]
    end
    set words[1] cargo-gpustub
    COMPLETE=fish cargo-gpustub -- $words (commandline --current-token)
end

function __gpustub_in_cargo
    set --local words (commandline --current-process --tokenize --cut-at-cursor)
    test (count $words) -ge 2; and test "$words[2]" = gpustub
end

complete --keep-order --exclusive --command cargo-gpustub --arguments "(__gpustub_complete)"
complete --keep-order --exclusive --command cargo --condition __gpustub_in_cargo --arguments "(__gpustub_complete)"
complete --command cargo --condition __fish_use_subcommand --no-files --arguments gpustub --description "Link GPU libraries lazily"
