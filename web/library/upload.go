package library

// uploadBody is the part of a source's page where people upload files. It is shown if Kind is set.
type uploadBody struct{ Kind string }

// uploadsOf is the place of uploads: it returns the part of the page for a source whose files people
// upload. The operation that stores uploaded files belongs here, with its form in the template
// uploads.
func (s *pages) uploadsOf(*sourcePage) uploadBody { return uploadBody{} }
