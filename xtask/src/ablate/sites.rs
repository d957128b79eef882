//! Finds the places of the judge's source that can be switched, and writes the switches into it.

use std::collections::{BTreeMap, BTreeSet};
use syn::spanned::Spanned;
use syn::visit::{self, Visit};
use syn::{BinOp, Expr, ExprBinary, ExprIf, ExprMethodCall, ExprPath, Item, ItemConst, Stmt};

/// Types of constants that can be halved and doubled.
const NUMBERS: [&str; 8] = ["u8", "u16", "u32", "u64", "usize", "i32", "i64", "f64"];
/// Methods whose closure is a condition.
const FILTERS: [&str; 3] = ["filter", "retain", "take_while"];

/// A place that can be switched.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Site {
    /// The change that the switch makes.
    pub(crate) change: Change,
    /// Name of the file, from the crate's `src`.
    pub(crate) file: String,
    /// Number of its line, from 1.
    pub(crate) line: usize,
    /// The constant's name or the condition's text.
    pub(crate) text: String,
}

/// A change that a switch makes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Change {
    Halved,
    Doubled,
    /// The condition of an early return never holds.
    NeverReturns,
    /// A condition that stands beside others is left out.
    LeftOut,
}

impl Change {
    /// Returns the name as it stands in the table.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Halved => "halved",
            Self::Doubled => "doubled",
            Self::NeverReturns => "never returns",
            Self::LeftOut => "left out",
        }
    }
}

/// Numeric constants by name; those of one name in several files are told apart by the file that uses them.
#[derive(Debug, Default)]
pub(crate) struct Constants {
    /// For each name, the files that declare it with their first sites.
    by_name: BTreeMap<String, Vec<(String, usize)>>,
    /// Names of other constants: what a file imports by one of these may be no number.
    others: BTreeSet<String>,
}

impl Constants {
    /// Adds the numeric constants of a file to the sites.
    pub(crate) fn declare(&mut self, file: &str, text: &str, sites: &mut Vec<Site>) -> syn::Result<()> {
        let mut declared = Declared::default();
        declared.visit_file(&syn::parse_file(text)?);
        self.others.extend(declared.others);
        for (name, line) in declared.numbers {
            self.by_name.entry(name.clone()).or_default().push((file.into(), sites.len()));
            let site = |change| Site { change, file: file.into(), line, text: name.clone() };
            sites.extend([Change::Halved, Change::Doubled].map(site));
        }
        Ok(())
    }

    /// Returns the first site of the constant that a file means by a name: its own, or the only one of that name if the
    /// file `imports` it.
    fn site(&self, file: &str, name: &str, imports: bool) -> Option<usize> {
        let all = self.by_name.get(name)?;
        let own = all.iter().find(|(declares, _)| declares == file);
        let is_only = imports && all.len() == 1 && !self.others.contains(name);
        own.or(all.first().filter(|_| is_only)).map(|(_, site)| *site)
    }
}

/// Names that a file imports.
#[derive(Default)]
struct Imported(BTreeSet<String>);

impl<'ast> Visit<'ast> for Imported {
    fn visit_use_name(&mut self, name: &'ast syn::UseName) {
        self.0.insert(name.ident.to_string());
    }
}

/// Names and lines of the numeric constants of a file, and names of its other constants, without those of tests.
#[derive(Default)]
struct Declared {
    numbers: Vec<(String, usize)>,
    others: Vec<String>,
}

impl Declared {
    fn add(&mut self, name: &syn::Ident, kind: &syn::Type) {
        if is_number(kind) {
            self.numbers.push((name.to_string(), name.span().start().line));
        } else {
            self.others.push(name.to_string());
        }
    }
}

impl<'ast> Visit<'ast> for Declared {
    fn visit_item(&mut self, item: &'ast Item) {
        if !is_test(item) {
            visit::visit_item(self, item);
        }
    }

    fn visit_item_const(&mut self, item: &'ast ItemConst) {
        self.add(&item.ident, &item.ty);
    }

    fn visit_item_static(&mut self, item: &'ast syn::ItemStatic) {
        self.add(&item.ident, &item.ty);
    }

    fn visit_impl_item_const(&mut self, item: &'ast syn::ImplItemConst) {
        self.add(&item.ident, &item.ty);
    }
}

fn is_number(kind: &syn::Type) -> bool {
    matches!(kind, syn::Type::Path(path) if NUMBERS.iter().any(|number| path.path.is_ident(number)))
}

/// Returns the text of a file with switches at its sites, which are added to `sites`.
pub(crate) fn switched(file: &str, text: &str, constants: &Constants, sites: &mut Vec<Site>) -> syn::Result<String> {
    let parsed = syn::parse_file(text)?;
    let mut imported = Imported::default();
    imported.visit_file(&parsed);
    let mut writer = Writer { file, text, constants, imported: imported.0, sites, put: Vec::new(), depth: 0 };
    writer.visit_file(&parsed);
    let mut put = writer.put;
    put.sort_by_key(|put| (put.at, put.order));
    let (mut out, mut from) = (String::new(), 0);
    for Put { at, words, .. } in put {
        out += &text[from..at];
        out += &words;
        from = at;
    }
    Ok(out + &text[from..])
}

/// Words to put into a text.
struct Put {
    at: usize,
    /// Orders words at one place: ends (`false`) before beginnings, inner ends and outer beginnings first.
    order: (bool, i32),
    words: String,
}

struct Writer<'a> {
    file: &'a str,
    text: &'a str,
    constants: &'a Constants,
    imported: BTreeSet<String>,
    sites: &'a mut Vec<Site>,
    put: Vec<Put>,
    depth: i32,
}

impl Writer<'_> {
    /// Puts words around an expression.
    fn around(&mut self, expr: &impl Spanned, before: String, after: &str) {
        let range = expr.span().byte_range();
        self.depth += 1;
        self.put.push(Put { at: range.start, order: (true, self.depth), words: before });
        self.put.push(Put { at: range.end, order: (false, -self.depth), words: after.into() });
    }

    fn site(&mut self, change: Change, expr: &impl Spanned) -> usize {
        let span = expr.span();
        let text = self.text[span.byte_range()].split_whitespace().collect::<Vec<_>>().join(" ");
        self.sites.push(Site { change, file: self.file.into(), line: span.start().line, text });
        self.sites.len() - 1
    }

    /// Makes it possible to leave out an operand of `&&`, or one of `||`.
    fn operand(&mut self, expr: &Expr, is_and: bool) {
        let is_chain =
            matches!(expr, Expr::Binary(b) if matches!((b.op, is_and), (BinOp::And(_), true) | (BinOp::Or(_), false)));
        if is_chain || matches!(expr, Expr::Let(_)) {
            return;
        }
        let site = self.site(Change::LeftOut, expr);
        let switch = if is_and { "gone" } else { "kept" };
        let joined = if is_and { "||" } else { "&&" };
        self.around(expr, format!("(crate::ablate::{switch}({site}) {joined} ("), "))");
    }
}

impl<'ast> Visit<'ast> for Writer<'_> {
    fn visit_item(&mut self, item: &'ast Item) {
        // Constants are computed before the program runs.
        let is_const = matches!(item, Item::Const(_) | Item::Static(_))
            || matches!(item, Item::Fn(function) if function.sig.constness.is_some());
        if !is_const && !is_test(item) {
            visit::visit_item(self, item);
        }
    }

    fn visit_impl_item_const(&mut self, _: &'ast syn::ImplItemConst) {}

    fn visit_impl_item_fn(&mut self, function: &'ast syn::ImplItemFn) {
        if function.sig.constness.is_none() {
            visit::visit_impl_item_fn(self, function);
        }
    }

    fn visit_type(&mut self, _: &'ast syn::Type) {}

    fn visit_pat(&mut self, _: &'ast syn::Pat) {}

    fn visit_expr_repeat(&mut self, expr: &'ast syn::ExprRepeat) {
        self.visit_expr(&expr.expr);
    }

    fn visit_expr_path(&mut self, expr: &'ast ExprPath) {
        let names: Vec<String> = expr.path.segments.iter().map(|segment| segment.ident.to_string()).collect();
        let ([name] | [_, name]) = names.as_slice() else { return };
        // What stands in another type is not a constant of that name.
        if names.len() == 2 && names.first().is_none_or(|of| of != "Self") {
            return;
        }
        if let Some(site) = self.constants.site(self.file, name, self.imported.contains(name)) {
            self.around(expr, format!("crate::ablate::number({site}, "), ")");
        }
    }

    fn visit_expr_if(&mut self, expr: &'ast ExprIf) {
        let leaves = matches!(
            expr.then_branch.stmts.as_slice(),
            [Stmt::Expr(Expr::Return(_) | Expr::Continue(_) | Expr::Break(_), _)]
        );
        if leaves && expr.else_branch.is_none() {
            let site = self.site(Change::NeverReturns, &expr.cond);
            if has_let(&expr.cond) {
                self.around(&expr.cond, format!("crate::ablate::kept({site}) && "), "");
            } else {
                self.around(&expr.cond, format!("(crate::ablate::kept({site}) && ("), "))");
            }
        }
        visit::visit_expr_if(self, expr);
    }

    fn visit_expr_binary(&mut self, expr: &'ast ExprBinary) {
        if let BinOp::And(_) | BinOp::Or(_) = expr.op {
            let is_and = matches!(expr.op, BinOp::And(_));
            self.operand(&expr.left, is_and);
            // Operands are visited after their switch is put, so that the outer switch comes first.
            self.visit_expr(&expr.left);
            self.operand(&expr.right, is_and);
            self.visit_expr(&expr.right);
        } else {
            visit::visit_expr_binary(self, expr);
        }
    }

    fn visit_expr_method_call(&mut self, call: &'ast ExprMethodCall) {
        if FILTERS.iter().any(|name| call.method == name)
            && let Some(Expr::Closure(closure)) = call.args.first()
            && closure.inputs.len() == 1
            && !matches!(*closure.body, Expr::Block(_))
        {
            self.operand(&closure.body, true);
        }
        visit::visit_expr_method_call(self, call);
    }
}

/// Returns true if the condition binds names.
fn has_let(cond: &Expr) -> bool {
    match cond {
        Expr::Let(_) => true,
        Expr::Binary(binary) if matches!(binary.op, BinOp::And(_)) => has_let(&binary.left) || has_let(&binary.right),
        _ => false,
    }
}

/// Returns true for what is compiled for tests only.
fn is_test(item: &Item) -> bool {
    let attributes = match item {
        Item::Fn(item) => &item.attrs,
        Item::Mod(item) => &item.attrs,
        Item::Impl(item) => &item.attrs,
        Item::Const(item) => &item.attrs,
        Item::Static(item) => &item.attrs,
        Item::Struct(item) => &item.attrs,
        Item::Enum(item) => &item.attrs,
        _ => return false,
    };
    attributes.iter().any(|attribute| {
        attribute.path().is_ident("cfg") && attribute.parse_args::<syn::Path>().is_ok_and(|path| path.is_ident("test"))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn constants_conditions_and_returns_are_switched() {
        let text = "const MANY: u64 = 8;\nconst NAME: &str = \"x\";\nfn f(a: u64, b: Option<u64>) -> bool {\n    \
                    if a > MANY { return false; }\n    if let Some(b) = b && b > 1 { return true; }\n    \
                    a == 1 && (a > 2 || NAME == \"y\")\n}\n";
        let (mut sites, mut constants) = (Vec::new(), Constants::default());
        constants.declare("x.rs", text, &mut sites).unwrap();
        let out = switched("x.rs", text, &constants, &mut sites).unwrap();
        let switched: Vec<String> = sites.iter().map(|site| format!("{} {}", site.change.name(), site.text)).collect();
        assert_eq!(
            switched,
            [
                "halved MANY",
                "doubled MANY",
                "never returns a > MANY",
                "never returns let Some(b) = b && b > 1",
                "left out b > 1",
                "left out a == 1",
                "left out (a > 2 || NAME == \"y\")",
                "left out a > 2",
                "left out NAME == \"y\"",
            ]
        );
        assert!(
            out.contains("if (crate::ablate::kept(2) && (a > crate::ablate::number(0, MANY))) { return false; }"),
            "{out}"
        );
        assert!(
            out.contains("if crate::ablate::kept(3) && let Some(b) = b && (crate::ablate::gone(4) || (b > 1)) {"),
            "{out}"
        );
        syn::parse_file(&out).unwrap();
    }
}
