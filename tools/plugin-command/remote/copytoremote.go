package remote

import (
	"context"

	p "github.com/pulumi/pulumi-go-provider"
	"github.com/pulumi/pulumi-go-provider/infer"
	"github.com/pulumi/pulumi-go-provider/infer/types"
	"github.com/pulumi/pulumi/sdk/v3/go/common/resource"
)

// CopyToRemote is command:remote:CopyToRemote.
type CopyToRemote struct{}

// CopyToRemoteInputs has every field that the SDK sends.
type CopyToRemoteInputs struct {
	Connection Connection           `pulumi:"connection"        provider:"secret"`
	Source     types.AssetOrArchive `pulumi:"source"`
	RemotePath string               `pulumi:"remotePath"`
	Triggers   []any                `pulumi:"triggers,optional" provider:"replaceOnChanges"`
}

// CopyToRemoteOutputs are the inputs: a copy has no result of its own.
type CopyToRemoteOutputs struct{ CopyToRemoteInputs }

// Annotate documents the resource's inputs.
func (c *CopyToRemoteInputs) Annotate(a infer.Annotator) {
	a.Describe(&c.Source, "A FileAsset, a StringAsset or a FileArchive; archives stay packed.")
	a.Describe(&c.RemotePath, "Where it goes; all but the last element must exist.")
	a.Describe(&c.Triggers, "The resource is replaced if any of these values change.")
}

// Check refuses a source that cannot be copied before anything is dialled.
func (CopyToRemote) Check(
	ctx context.Context, req infer.CheckRequest,
) (infer.CheckResponse[CopyToRemoteInputs], error) {
	inputs, failures, err := infer.DefaultCheck[CopyToRemoteInputs](ctx, req.NewInputs)
	if err == nil && len(failures) == 0 {
		if reason := unfit(inputs.Source); reason != "" {
			failures = append(failures, p.CheckFailure{Property: "source", Reason: reason})
		}
	}
	return infer.CheckResponse[CopyToRemoteInputs]{Inputs: inputs, Failures: failures}, err
}

func unfit(source types.AssetOrArchive) string {
	switch {
	case source.Asset != nil && source.Archive != nil:
		return "only one of asset or archive can be set"
	case source.Asset != nil && !source.Asset.IsPath() && !source.Asset.IsText():
		return "an asset must be a FileAsset or a StringAsset"
	case source.Archive != nil && !source.Archive.IsPath():
		return "an archive must be a FileArchive: a path to a file or a directory"
	}
	return ""
}

// Create copies the source.
func (CopyToRemote) Create(
	ctx context.Context, req infer.CreateRequest[CopyToRemoteInputs],
) (infer.CreateResponse[CopyToRemoteOutputs], error) {
	response := infer.CreateResponse[CopyToRemoteOutputs]{
		Output: CopyToRemoteOutputs{req.Inputs},
	}
	id, err := resource.NewUniqueHex("", 8, 0)
	if err != nil || req.DryRun {
		return response, err
	}
	response.ID = id
	return response, copySource(ctx, &req.Inputs)
}

// Update copies again if the content or the place changed: another connection alone is no reason.
func (CopyToRemote) Update(
	ctx context.Context, req infer.UpdateRequest[CopyToRemoteInputs, CopyToRemoteOutputs],
) (infer.UpdateResponse[CopyToRemoteOutputs], error) {
	response := infer.UpdateResponse[CopyToRemoteOutputs]{
		Output: CopyToRemoteOutputs{req.Inputs},
	}
	changed := req.Inputs.RemotePath != req.State.RemotePath ||
		fingerprint(req.Inputs.Source) != fingerprint(req.State.Source)
	if req.DryRun || !changed {
		return response, nil
	}
	return response, copySource(ctx, &req.Inputs)
}

func fingerprint(source types.AssetOrArchive) string {
	switch {
	case source.Archive != nil:
		return source.Archive.Hash
	case source.Asset != nil:
		return source.Asset.Hash
	}
	return ""
}

func copySource(ctx context.Context, inputs *CopyToRemoteInputs) error {
	to, closeUpload, err := openUpload(ctx, &inputs.Connection)
	if err != nil {
		return err
	}
	defer closeUpload()
	switch source := inputs.Source; {
	case source.Archive != nil:
		return to.path(source.Archive.Path, inputs.RemotePath)
	case source.Asset.IsText():
		return to.text(source.Asset.Text, inputs.RemotePath)
	default:
		return to.path(source.Asset.Path, inputs.RemotePath)
	}
}
