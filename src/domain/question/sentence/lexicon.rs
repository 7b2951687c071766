//! Words by which clauses and phrases of a sentence are told apart.

/// Words that begin a clause about the noun before them.
pub(super) const RELATIVE: &str = "that which who whom whose where";
/// Words that begin other clauses.
pub(super) const CONJUNCTIONS: &str = "although because how if though unless what when whether while why";
/// Words by which a noun follows.
pub(super) const DETERMINERS: &str = "a an the this these those its their his her our your my each every no some any all both such \
    several many more other another various";
/// Words that stand before a noun or a clause, besides those that questions begin with.
pub(super) const LINKS: &str = "about above across after against along alongside among and around as at before behind below \
    beneath between beyond but despite except including inside into like near nor once onto or out outside over per since than \
    then throughout together toward towards under unlike until upon using versus via within without";
/// Words of a time that follow "this", "next" and the like.
pub(super) const TIMES: &str = "day days decade hour hours month months night quarter spring summer autumn fall time times week \
    weekend weeks winter year years";
/// Words that say when, where or how often, and are no object of a verb.
pub(super) const ADVERBS: &str = "again almost already also always anywhere elsewhere even ever everywhere first here instead just \
    last later most never not now often once only sometimes soon still then there today together too twice usually well \
    worldwide yesterday";
/// Nouns that stand for whatever a clause says of them.
pub(super) const ANYTHING: &str = "anything everything something stuff things whatever";
/// Persons and things that a noun for software describes: "malware authors", "ransomware attacks".
pub(super) const DESCRIBED: &str = "activity affiliate analyst attack attacker author binary builder code criminal developer \
    distributor family incident infection operation operator outbreak payload researcher sample variant writer";
/// Those who act: what they are said to have done is no description of them.
pub(super) const ATTACKERS: &str =
    "adversaries attackers criminals cybercriminals hackers intruders operators";

/// Whether a list has a word.
pub(super) fn has(list: &str, word: &str) -> bool {
    list.split_whitespace().any(|listed| listed == word)
}
