"""The grammar of the language (`convdsl.lark`) and its corpus of accepted and rejected texts."""
