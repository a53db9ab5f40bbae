package render

import (
	"path"
	"strings"
)

// languageOfFile returns the language of a file by its name. It returns nil if the language
// is unknown.
func languageOfFile(name string) *language {
	base := strings.ToLower(path.Base(name))
	switch base {
	case "dockerfile", "containerfile":
		return languageOf("dockerfile")
	case "makefile", "gnumakefile", "justfile":
		return languageOf("make")
	case ".bashrc", ".profile", ".bash_profile", ".zshrc":
		return languageOf("sh")
	case ".gitignore", ".gitattributes", ".editorconfig", ".env":
		return languageOf("ini")
	}
	if ext := path.Ext(base); ext != "" {
		return languageOf(ext[1:])
	}
	return nil
}

// languageOf returns a language by the name after a code fence or the extension of a file.
// It returns nil if the language is unknown. It builds the language on each call, so that a
// process that shows no code does not hold languages in memory.
func languageOf(name string) *language {
	var (
		double   = quote{`"`, `"`, true, false}
		single   = quote{`'`, `'`, true, false}
		backtick = quote{"`", "`", false, true}
		template = quote{"`", "`", true, true}
		three    = quote{`"""`, `"""`, true, true}
		three1   = quote{`'''`, `'''`, true, true}
		shell1   = quote{`'`, `'`, false, true}
		shell2   = quote{`"`, `"`, true, true}

		slashes = []string{"//"}
		hash    = []string{"#"}
		stars   = [][2]string{{"/*", "*/"}}
		both    = []quote{double, single}
	)
	switch strings.ToLower(name) {
	case "go", "golang":
		return &language{line: slashes, block: stars, quotes: []quote{double, single, backtick}, words: "break case chan const continue default defer else fallthrough for func go goto if import interface map package range return select struct switch type var nil true false iota any string int int64 uint byte rune error bool float64"}
	case "js", "javascript", "mjs", "cjs", "jsx", "ts", "typescript", "tsx", "mts":
		return &language{line: slashes, block: stars, quotes: []quote{double, single, template}, ident: "$", words: "abstract any as async await boolean break case catch class const continue debugger declare default delete do else enum export extends false finally for from function get if implements import in instanceof interface keyof let namespace never new null number of private protected public readonly return set static string super switch this throw true try type typeof undefined unknown var void while yield"}
	case "py", "python", "pyi":
		return &language{line: hash, quotes: []quote{three, three1, double, single}, words: "False None True and as assert async await break case class continue def del elif else except finally for from global if import in is lambda match nonlocal not or pass raise return self try while with yield"}
	case "sh", "bash", "zsh", "shell", "console", "fish":
		return &language{line: hash, quotes: []quote{shell1, shell2}, words: "if then else elif fi for while until do done case esac in function select return exit break continue local export readonly declare set unset shift trap source eval exec echo cd test sudo"}
	case "json", "jsonc", "json5", "webmanifest":
		return &language{line: slashes, block: stars, quotes: both, words: "true false null", keys: true}
	case "yaml", "yml":
		return &language{line: hash, quotes: both, words: "true false null yes no on off", ident: "-.", keys: true}
	case "toml", "ini", "cfg", "conf", "properties", "env":
		return &language{line: []string{"#", ";"}, quotes: []quote{three, double, single}, words: "true false", ident: "-"}
	case "sql", "postgres", "sqlite", "mysql":
		return &language{line: []string{"--"}, block: stars, quotes: []quote{{`'`, `'`, false, true}, {`"`, `"`, false, false}}, fold: true, words: "add all alter and any as asc begin between by case cast check column commit constraint create cross default delete desc distinct drop else end exists false foreign from full grant group having if in index inner insert into is join key left like limit not null offset on or order outer primary references returning right rollback select set table then transaction true union unique update using values view when where with"}
	case "html", "htm", "xml", "svg", "xhtml", "vue", "svelte", "rss", "plist":
		return &language{block: [][2]string{{"<!--", "-->"}}, tags: true}
	case "css", "scss", "less":
		return &language{block: stars, quotes: both, ident: "-@", keys: true, words: "@media @import @supports @font-face @keyframes @layer @container important inherit initial unset none auto"}
	case "c", "h", "cc", "cpp", "cxx", "hpp", "c++":
		return &language{line: slashes, block: stars, quotes: both, ident: "#", words: "#include #define #ifdef #ifndef #endif #if #else alignas auto bool break case catch char class concept const constexpr continue default delete do double else enum explicit extern false float for friend goto if inline int long mutable namespace new noexcept nullptr operator private protected public return short signed sizeof static struct switch template this throw true try typedef typename union unsigned using virtual void volatile while NULL"}
	case "java":
		return &language{line: slashes, block: stars, quotes: []quote{three, double, single}, words: "abstract assert boolean break byte case catch char class const continue default do double else enum extends false final finally float for if implements import instanceof int interface long native new null package permits private protected public record return sealed short static super switch synchronized this throw throws transient true try var void volatile while yield"}
	case "kt", "kotlin", "kts":
		return &language{line: slashes, block: stars, quotes: []quote{three, double, single}, words: "as break by catch class companion const continue data do else enum false finally for fun if import in init interface internal is lateinit null object open override package private protected public return sealed super suspend this throw true try typealias val var vararg when while"}
	case "cs", "csharp", "c#":
		return &language{line: slashes, block: stars, quotes: []quote{three, double, single}, words: "abstract as async await base bool break byte case catch char class const continue decimal default delegate do double else enum event explicit extern false finally fixed float for foreach get if implicit in int interface internal is lock long namespace new null object out override params partial private protected public readonly record ref return sealed set short static string struct switch this throw true try typeof uint using var virtual void volatile while yield"}
	case "rs", "rust":
		// Single quotes do not begin strings here, because in Rust one also begins a lifetime.
		return &language{line: slashes, block: stars, quotes: []quote{{`"`, `"`, true, true}}, words: "as async await break const continue crate dyn else enum extern false fn for if impl in let loop match mod move mut pub ref return self Self static struct super trait true type unsafe use where while bool char str String u8 u16 u32 u64 usize i8 i16 i32 i64 isize f32 f64 Option Result Vec Some None Ok Err"}
	case "rb", "ruby":
		return &language{line: hash, quotes: both, ident: "?!@", words: "alias and begin break case class def defined? do else elsif end ensure false for if in module next nil not or redo rescue retry return self super then true undef unless until when while yield require require_relative attr_reader attr_accessor"}
	case "php":
		return &language{line: []string{"//", "#"}, block: stars, quotes: both, ident: "$", words: "abstract and array as break case catch class const continue declare default do echo else elseif enum extends false final finally fn for foreach function global if implements include instanceof interface isset match namespace new null or private protected public readonly require require_once return static switch throw trait true try use var void while yield"}
	case "swift":
		return &language{line: slashes, block: stars, quotes: []quote{three, double}, ident: "@", words: "actor as associatedtype async await break case catch class continue default defer deinit do else enum extension false fileprivate final for func guard if import in init inout internal is lazy let mutating nil open operator override private protocol public repeat return self Self some static struct subscript super switch throw throws true try typealias var weak where while"}
	case "lua":
		return &language{line: []string{"--"}, block: [][2]string{{"--[[", "]]"}}, quotes: both, words: "and break do else elseif end false for function goto if in local nil not or repeat return then true until while"}
	case "dockerfile", "docker":
		return &language{line: hash, quotes: both, fold: true, words: "from as run cmd label expose env add copy entrypoint volume user workdir arg onbuild stopsignal healthcheck shell"}
	case "make", "makefile", "mk", "just":
		return &language{line: hash, quotes: both, ident: "-.", words: "include ifeq ifneq ifdef ifndef else endif define endef export override .PHONY", keys: true}
	case "tf", "hcl", "terraform":
		return &language{line: []string{"#", "//"}, block: stars, quotes: []quote{double}, words: "resource data variable output module provider terraform locals for_each count true false null for in if"}
	case "r", "pl", "perl":
		return &language{line: hash, quotes: both, ident: "$@%", words: "if else elsif unless for foreach while repeat function return my our local sub use require package next last break TRUE FALSE NULL NA in library"}
	case "scala":
		return &language{line: slashes, block: stars, quotes: []quote{three, double}, words: "abstract case catch class def do else enum extends false final finally for given if implicit import lazy match new null object override package private protected return sealed super then this throw trait true try type using val var while with yield"}
	case "diff", "patch":
		return &language{diff: true}
	}
	return nil
}
