package space

// Elsewhere stands for the tool of a commit that says Satchel made it, of which the
// server knows nothing: whoever made it wrote that.
const Elsewhere = "git"
