// The licences of what is linked in, and the bill of materials. A module of its own,
// because of what that needs.
module github.com/conversion-operator/conversion-operator/internal/test/licences

go 1.26.0

require (
	github.com/CycloneDX/cyclonedx-go v0.9.3
	github.com/google/go-cmp v0.7.0
	github.com/google/licensecheck v0.3.1
)
